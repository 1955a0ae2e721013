"""What stands out in a run, one statement each: the table is asked, not only the method."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ttgcd.report.course import course, entropy, seed_rows
from ttgcd.report.facts import (
    LATER_FOLDERS,
    NO_STRUCTURE,
    Facts,
    Level,
    buffer_level,
    doubted_names,
    labels_say,
    names_fit,
    names_level,
)
from ttgcd.report.header import count_of, kind_of, noun
from ttgcd.report.order import excess_distance, fit_drop, late_names
from ttgcd.report.run_files import RunFiles
from ttgcd.report.signs import Signs
from ttgcd.wording import listed

#: What a finding is about. The verdict has rules of its own for all but "run".
Topic = Literal["labels", "order", "names", "groups", "run"]
_SHOWN = 8
#: Samples in the buffer and behind it from which the two can be compared.
_BUFFERED, _BEHIND = 20, 50


@dataclass(frozen=True)
class Finding:
    """One statement about the run: good, worth a look, or bad."""

    level: Level
    text: str
    topic: Topic = "run"


def facts_of(run: RunFiles) -> Facts:
    """The facts that the files of a run hold."""
    health, scores = run.health, run.scores or {}
    signs = run.record.get("signs")
    names = tuple(c.name for c in run.categories if c.kind == "known")
    size = run.warmup
    compared = size >= _BUFFERED and len(run) - size >= _BEHIND
    seeds = seed_rows(run)
    kinds = (run.is_novel & ~seeds, ~run.is_novel)
    reliability, between = health.get("names_reliability"), health.get("novel_range")
    among = [*_crowded(run), *_spread(run), *_unused(run), *_rejected(run), *_drift(run)]
    others = [*among, *_losses(run), *_warmup(run), *_inactive(run)]
    return Facts(
        samples=len(run),
        noun=noun(run),
        names=names,
        signs=Signs() if signs is None else Signs.from_json(signs),
        # One name alone is neither borne out nor contradicted by any other.
        reliability=reliability if len(names) > 1 else None,
        novel=len(run.standing()),
        novel_range=None if between is None else (int(between[0]), int(between[1])),
        novel_given=_novel_given(run),
        count_judged=bool(health.get("count_judged", True)),
        right_names=_right_names(scores) if names else None,
        right_all=scores.get("all"),
        late=tuple(late_names(run.category, size, names)),
        later_worse=fit_drop(run.score, kinds, size) if compared else 0.0,
        later_elsewhere=(
            excess_distance(run.category[:size], run.category[size:]) if compared else 0.0
        ),
        later_folders=tuple(_later_folders(run)) if compared else (),
        unevidenced=tuple(str(name) for name in health.get("inactive_known") or ()),
        faults=tuple(f.text for f in others if f.level == "bad" and f.topic == "run"),
        looks=tuple(f.text for f in others if f.level == "look"),
    )


def findings(run: RunFiles, facts: Facts) -> list[Finding]:
    """What the numbers say, worst first."""
    found = [
        *_labels(run, facts),
        *_names(facts),
        *_structure(facts),
        *_buffer(run, facts),
        *_late_classes(run, facts),
        *_crowded(run),
        *_spread(run),
        *_unused(run),
        *_warmup(run),
        *_inactive(run),
        *_rejected(run),
        *_drift(run),
        *_losses(run),
    ]
    order = {"bad": 0, "look": 1, "good": 2}
    return sorted(found, key=lambda finding: order[finding.level])


def _labels(run: RunFiles, facts: Facts) -> list[Finding]:
    """Labels, where given, overrule every other sign of health."""
    level, scores = labels_say(facts), run.scores or {}
    if level is None:
        return []
    said = f"{scores['all']:.0f}% of the images are where they belong"
    if scores.get("known") is not None:
        said += f", {scores['known']:.0f}% of those of known classes"
    if scores.get("named_known_accuracy") is not None:
        said += f" ({scores['named_known_accuracy']:.0f}% with the right name)"
    only = "" if level == "good" else "only "
    return [Finding(level, f"By your labels {only}{said}.", "labels")]


def _names(facts: Facts) -> list[Finding]:
    """How far names and answers bear each other out."""
    signs, fit = facts.signs, names_fit(facts)
    if fit is None:
        return []
    assert signs.known_confidence is not None
    said = [
        f"the answers with a known class have a median confidence of {signs.known_confidence:.2f}"
    ]
    if facts.reliability is not None:
        said.append(f"groups made without the names bear them out by {facts.reliability:.2f} of 1")
    doubted = doubted_names(facts)
    if doubted:
        judged = sum(c is not None for c in signs.names)
        said.append(
            f"{len(doubted)} of {judged} names have answers that are most likely wrong: "
            f"{listed(doubted, _SHOWN)}"
        )
    text = "; ".join(said)
    return [Finding(names_level(facts), f"{text[:1].upper()}{text[1:]}.", "names")]


def _structure(facts: Facts) -> list[Finding]:
    structure = facts.signs.structure
    if structure is None:
        return []
    said = f"by {max(structure, 0):.0%} than in a cloud without groups"
    if structure < NO_STRUCTURE:
        return [Finding("bad", f"Neighbours are hardly nearer to each other, {said}.", "groups")]
    return [Finding("good", f"Neighbours are nearer to each other {said}.", "groups")]


def _buffer(run: RunFiles, facts: Facts) -> list[Finding]:
    """Everything rests on the buffer: was it like the rest of the stream?"""
    size, found = run.warmup, []
    advice = "Run again without --in-order, so that the buffer is a fair sample."
    level = buffer_level(facts)
    if level != "good":
        found.append(
            Finding(
                level,
                f"The first {size:,} images, on which the groups were built, are unlike the rest: "
                f"later images fit their groups worse (by {max(facts.later_worse, 0):.1f} standard "
                "deviations) and fall into other categories "
                f"({max(facts.later_elsewhere, 0):.0%} more than chance explains). {advice}",
                "order",
            )
        )
    if facts.later_folders:
        names = listed([name or "(top folder)" for name in facts.later_folders], _SHOWN)
        found.append(
            Finding(
                "look",
                f"Many of the later images come from {len(facts.later_folders):,} folders of which "
                f"none was among the first {size:,} images: {names}. {advice}",
                "order",
            )
        )
    return found


def _later_folders(run: RunFiles) -> list[str]:
    """Folders that the buffer saw nothing of, the largest first, where they hold many of the later
    images; in an order drawn at random that means nothing."""
    if _settings(run).get("shuffle"):
        return []
    early = run.ids.folders(0, run.warmup)
    later = run.ids.folders(run.warmup, len(run))
    unseen = Counter({folder: count for folder, count in later.items() if folder not in early})
    if sum(unseen.values()) <= LATER_FOLDERS * (len(run) - run.warmup):
        return []
    return [name for name, _ in unseen.most_common()]


def _late_classes(run: RunFiles, facts: Facts) -> list[Finding]:
    """Known classes that came after the buffer was full have a prototype made of other things."""
    names = facts.late
    if not names:
        return []
    return [
        Finding(
            "look",
            f"{len(names)} known {_plural(len(names), 'class was', 'classes were')} not among the "
            f"first {run.warmup:,} images: {listed(names, _SHOWN)}. Look at what stands in "
            f"{_plural(len(names), 'its card', 'their cards')}.",
            "order",
        )
    ]


def _crowded(run: RunFiles) -> list[Finding]:
    """As many categories as images is no grouping."""
    novel = len(run.standing())
    if novel < 3 or not len(run):
        return []
    each = len(run) / novel
    given = _novel_given(run)
    if each < (6 if given else 3):
        asked = "asked of" if given else "found in"
        return [
            Finding(
                "bad" if given and each < 4 else "look",
                f"{count_of(novel, *kind_of(run))} were {asked} {len(run):,} images, "
                f"{each:.1f} images for each: too many to mean anything. "
                f"{'Ask for' if given else 'Try'} fewer with --novel.",
            )
        ]
    alone = sum(run.counts.get(c.id) == 1 for c in run.categories if c.kind == "novel")
    if alone > 0.25 * novel:
        return [
            Finding(
                "look",
                f"{alone:,} of {count_of(novel, *kind_of(run))} hold a single image: fewer may be "
                "enough (--novel).",
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
            f"{empty:,} of {count_of(len(novel), *kind_of(run))} "
            f"{_plural(empty, 'is', 'are')} empty: there may be fewer kinds in the stream than "
            "asked for.",
        )
    ]


def _warmup(run: RunFiles) -> list[Finding]:
    if run.health.get("warmed_up") is not False:
        return []
    return [Finding("look", "The warm-up was not completed: answers are zero-shot labels.")]


def _inactive(run: RunFiles) -> list[Finding]:
    inactive = run.health.get("inactive_known")
    if inactive is None:
        return []
    if not inactive:
        return [Finding("good", "Every known class gathered enough confident images.", "names")]
    return [
        Finding(
            "bad" if len(inactive) == run.n_known else "look",
            f"{len(inactive)} of {run.n_known} known classes never gathered enough confident "
            f"images: {listed([str(name) for name in inactive], _SHOWN)}. They may be absent from "
            "the stream, or their names may not describe what the pictures show.",
            "names",
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


def _right_names(scores: Mapping[str, Any]) -> float | None:
    named = scores.get("named_known_accuracy")
    return scores.get("known") if named is None else named


def _novel_given(run: RunFiles) -> bool:
    """Runs before the number could be left open do not say."""
    return _settings(run).get("novel", 0) not in (None, "auto")


def _settings(run: RunFiles) -> dict[str, Any]:
    return run.record.get("settings") or {}


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many
