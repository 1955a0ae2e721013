"""Whether a run went well, in plain words: the table is asked, not only the method."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ttgcd.report.course import course, entropy, seed_rows
from ttgcd.report.run_files import RunFiles

Level = Literal["good", "look", "bad"]
_SHOWN = 8


@dataclass(frozen=True)
class Finding:
    """One statement about the run: good, worth a look, or bad."""

    level: Level
    text: str


def findings(run: RunFiles) -> list[Finding]:
    """What the numbers say, worst first."""
    found = [
        *_labels(run),
        *_buffer(run),
        *_late_classes(run),
        *_crowded(run),
        *_spread(run),
        *_unused(run),
        *_inactive(run),
        *_rejected(run),
        *_drift(run),
        *_losses(run),
    ]
    order = {"bad": 0, "look": 1, "good": 2}
    return sorted(found, key=lambda finding: order[finding.level])


def headline(found: list[Finding]) -> Finding:
    """The verdict over all findings."""
    levels = {finding.level for finding in found}
    if "bad" in levels:
        return Finding("bad", "Something went wrong: do not trust the groups before reading this.")
    if "look" in levels:
        return Finding("look", "The run finished; a few things are worth a look.")
    return Finding("good", "The run looks healthy.")


def _labels(run: RunFiles) -> list[Finding]:
    """Labels, where given, overrule every other sign of health."""
    scores = run.scores or {}
    every, known = scores.get("all"), scores.get("known")
    if every is None:
        return []
    level: Level = "good" if every >= 60 else "look" if every >= 30 else "bad"
    said = f"{every:.0f}% of the images are where they belong"
    if known is not None:
        said += f", {known:.0f}% of those of known classes"
        level = "bad" if known < 50 or level == "bad" else "look" if known < 70 else level
    return [Finding(level, f"By your labels {'' if level == 'good' else 'only '}{said}.")]


def _buffer(run: RunFiles) -> list[Finding]:
    """Everything rests on the buffer: was it like the rest of the stream?"""
    size, rest = run.warmup, len(run) - run.warmup
    if size < 20 or rest < 50:
        return []
    advice = "Run again without --in-order, so that the buffer is a fair sample."
    found = []
    unlike, drop = _excess_distance(run.category[:size], run.category[size:]), _fit_drop(run)
    if unlike > 0.1 or drop > 0.25:
        found.append(
            Finding(
                "bad" if unlike > 0.3 or drop > 0.5 else "look",
                f"The first {size:,} images, on which the groups were built, are unlike the rest: "
                f"later images fit their groups worse (by {max(drop, 0):.1f} standard deviations) "
                f"and fall into other categories ({max(unlike, 0):.0%} more than chance explains). "
                f"{advice}",
            )
        )
    early = run.ids.folders(0, size)
    later = run.ids.folders(size, len(run))
    unseen = Counter({folder: count for folder, count in later.items() if folder not in early})
    share = sum(unseen.values()) / rest
    if share > 0.1:
        names = _some([name or "(top folder)" for name, _ in unseen.most_common()])
        found.append(
            Finding(
                "look",
                f"{share:.0%} of the later images come from {len(unseen):,} folders of which none "
                f"was among the first {size:,} images: {names}. {advice}",
            )
        )
    return found


def _excess_distance(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation distance between two lots of answers, less what chance alone would give.

    For multinomial counts with pooled shares p the expected distance is about
    sum_k sqrt(p_k (1 - p_k) (1/n + 1/m) / (2 pi)).
    """
    size = int(max(one.max(), other.max())) + 1
    a = np.bincount(one, minlength=size) / len(one)
    b = np.bincount(other, minlength=size) / len(other)
    pooled = (len(one) * a + len(other) * b) / (len(one) + len(other))
    chance = np.sqrt(pooled * (1 - pooled) * (1 / len(one) + 1 / len(other)) / (2 * math.pi))
    return float(np.abs(a - b).sum() / 2 - chance.sum())


def _fit_drop(run: RunFiles) -> float:
    """By how many standard deviations the samples after the buffer score lower than those in it,
    known and novel compared each with its own kind."""
    early = np.zeros(len(run), bool)
    early[: run.warmup] = True
    seeds = seed_rows(run)
    spread = float(run.score.std())
    drops, weights = [0.0], [0]
    for kind in (run.is_novel & ~seeds, ~run.is_novel):
        before, after = run.score[kind & early], run.score[kind & ~early]
        if len(before) >= 10 and len(after) >= 10 and spread > 0:
            drops.append(float(before.mean() - after.mean()) / spread)
            weights.append(len(after))
    return float(np.average(drops, weights=weights)) if sum(weights) else 0.0


def _late_classes(run: RunFiles) -> list[Finding]:
    """Known classes that came after the buffer was full have a prototype made of other things."""
    size = run.warmup
    if not 0 < size < len(run):
        return []
    before, absent = set(run.category[:size].tolist()), 1 - size / len(run)
    late = [c for c in run.categories if c.kind == "known" and c.id not in before]
    # A rare class may be absent from a fair buffer: only what chance does not explain is said.
    names = [c.name for c in late if absent ** run.counts.get(c.id, 0) < 0.01]
    if not names:
        return []
    return [
        Finding(
            "look",
            f"{len(names)} known {_plural(len(names), 'class was', 'classes were')} not among the "
            f"first {size:,} images: {_some(names)}. Look at what stands in "
            f"{_plural(len(names), 'its card', 'their cards')}.",
        )
    ]


def _crowded(run: RunFiles) -> list[Finding]:
    """As many categories as images is no grouping."""
    novel = len(run.standing())
    if novel < 3 or not len(run):
        return []
    each = len(run) / novel
    if each < 10:
        return [
            Finding(
                "bad" if each < 4 else "look",
                f"{novel:,} new categories were asked of {len(run):,} images, {each:.1f} images "
                "for each: too many to mean anything. Ask for fewer with --novel.",
            )
        ]
    alone = sum(run.counts.get(c.id) == 1 for c in run.categories if c.kind == "novel")
    if alone > 0.25 * novel:
        return [
            Finding(
                "look",
                f"{alone:,} of {novel:,} new categories hold a single image: fewer categories may "
                "be enough (--novel).",
            )
        ]
    return []


def _spread(run: RunFiles) -> list[Finding]:
    """One category swallowing the stream is what a collapse looks like."""
    if len(run) < 50 or len(run.categories) < 3:
        return []
    counts = np.array(list(run.counts.values()))
    largest = float(counts.max() / len(run))
    found = []
    if largest > 0.9:
        found.append(
            Finding(
                "bad",
                f"One category holds {largest:.0%} of all images: the answers have collapsed, or "
                "the stream holds little else.",
            )
        )
    elif largest > 0.6:
        found.append(Finding("look", f"One category holds {largest:.0%} of all images."))
    used = course(run).evenly_used
    third = len(used) // 3
    if third >= 1:
        before, after = float(used[:third].mean()), float(used[-third:].mean())
        if after < 0.5 * before:
            found.append(
                Finding(
                    "look",
                    f"The answers narrow as the stream goes on: from about {before:.1f} categories "
                    f"in even use to {after:.1f}. Either the input changes or the method is "
                    "collapsing.",
                )
            )
    if not found:
        even = math.exp(float(entropy(counts[None])[0]))
        found.append(
            Finding(
                "good",
                f"The images are spread as if over {even:.0f} equally large categories; the "
                f"largest holds {largest:.0%}.",
            )
        )
    return found


def _unused(run: RunFiles) -> list[Finding]:
    novel = run.standing()
    empty = sum(c.id not in run.counts for c in novel)
    if not empty:
        return []
    return [
        Finding(
            "look",
            f"{empty:,} of {len(novel):,} new categories {_plural(empty, 'is', 'are')} empty: "
            "there may be fewer new kinds in the stream than asked for.",
        )
    ]


def _inactive(run: RunFiles) -> list[Finding]:
    if run.health.get("warmed_up") is False:
        return [Finding("look", "The warm-up was not completed: answers are zero-shot labels.")]
    inactive = run.health.get("inactive_known")
    if inactive is None:
        return []
    if not inactive:
        return [Finding("good", "Every known class gathered enough confident images.")]
    return [
        Finding(
            "bad" if len(inactive) == run.n_known else "look",
            f"{len(inactive)} of {run.n_known} known classes never gathered enough confident "
            f"images: {_some([str(name) for name in inactive])}. They may be absent from the "
            "stream, or their names may not describe what the pictures show.",
        )
    ]


def _rejected(run: RunFiles) -> list[Finding]:
    share = len(run.rejected) / max(len(run) + len(run.rejected), 1)
    if share <= 0.02:
        return []
    return [
        Finding(
            "bad" if share > 0.5 else "look",
            f"{len(run.rejected):,} files ({share:.0%}) could not be read: rejected.csv says why.",
        )
    ]


def _drift(run: RunFiles) -> list[Finding]:
    drift = [d for d in run.health.get("prototype_drift") or [] if d is not None]
    if not drift:
        return []
    if not np.isfinite(drift).all():
        return [Finding("bad", "Some prototypes are not finite numbers.")]
    largest, median = float(np.max(drift)), float(np.median(drift))
    said = f"(1 - cosine since the warm-up: median {median:.3f}, largest {largest:.3f})"
    if largest > 0.3:
        return [Finding("look", f"At least one prototype moved far from where it began {said}.")]
    return [Finding("good", f"Prototypes stayed near where they began {said}.")]


def _losses(run: RunFiles) -> list[Finding]:
    losses = run.health.get("realign_losses") or []
    if len(losses) < 2:
        return []
    if not all(loss is not None and math.isfinite(loss) for loss in losses):
        return [
            Finding("bad", "The re-alignment loss is not a finite number: lower the learning rate.")
        ]
    first, last = float(losses[0]), float(losses[-1])
    if last > first:
        return [
            Finding(
                "look",
                f"The re-alignment loss went up, from {first:.4g} to {last:.4g}: a lower learning "
                "rate may help.",
            )
        ]
    return [Finding("good", f"Re-alignment lowered the loss from {first:.4g} to {last:.4g}.")]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many
