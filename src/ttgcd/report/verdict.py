"""Whether a run went well, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ttgcd.report.summary import StreamSummary


@dataclass(frozen=True)
class Finding:
    """One statement about the run: good, worth a look, or bad."""

    level: Literal["good", "look", "bad"]
    text: str


def findings(summary: StreamSummary, health: dict[str, Any]) -> list[Finding]:
    """What the numbers say, worst first."""
    found = [
        *_answers(summary),
        *_spread(summary),
        *_unused(summary),
        *_inactive(summary, health),
        *_drift(health),
        *_losses(health),
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


def _answers(summary: StreamSummary) -> list[Finding]:
    if summary.counted == 0:
        return [Finding("bad", "No sample has a final answer yet.")]
    if summary.counted < summary.seen:
        waiting = summary.seen - summary.counted
        return [
            Finding(
                "look",
                f"{waiting:,} samples still wait for a final answer; they are not counted here.",
            )
        ]
    if summary.counted > summary.seen:
        return [
            Finding(
                "look",
                "The method changed answers that it had called final: the counts "
                "here are approximate.",
            )
        ]
    return []


def _spread(summary: StreamSummary) -> list[Finding]:
    """One category swallowing the stream is what a collapse looks like."""
    counts = summary.counts
    total = counts.sum()
    if total < 50 or len(counts) < 3:
        return []
    found = []
    largest = float(counts.max() / total)
    if largest > 0.9:
        found.append(
            Finding(
                "bad",
                f"One category holds {largest:.0%} of all samples: the "
                "assignments have collapsed, or the stream holds little else.",
            )
        )
    elif largest > 0.6:
        found.append(Finding("look", f"One category holds {largest:.0%} of all samples."))
    timeline = summary.timeline(least=max(64, 4 * len(counts)))
    entropy = timeline["entropy"]
    third = len(entropy) // 3
    if third >= 1:
        before, after = (math.exp(part.mean()) for part in (entropy[:third], entropy[-third:]))
        if after < 0.5 * before:
            found.append(
                Finding(
                    "look",
                    "The assignments narrow as the stream goes on: from about "
                    f"{before:.1f} categories in even use to {after:.1f}. Either the "
                    "input changes or the method is collapsing.",
                )
            )
    if not found:
        found.append(
            Finding(
                "good",
                "Answer are spread as if over "
                f"{math.exp(summary.entropy()):.1f} equally large categories; none "
                f"swallows the others (the largest holds {largest:.0%}).",
            )
        )
    return found


def _unused(summary: StreamSummary) -> list[Finding]:
    empty = int((summary.counts[summary.n_known :] == 0).sum())
    if not summary.n_novel or not empty or not summary.counted:
        return []
    what = "category is" if empty == 1 else "categories are"
    return [
        Finding(
            "look",
            f"{empty} of {summary.n_novel} novel {what} empty: there may be fewer "
            "new kinds in the stream than asked for.",
        )
    ]


def _inactive(summary: StreamSummary, health: dict[str, Any]) -> list[Finding]:
    if health.get("warmed_up") is False:
        return [Finding("look", "The warm-up was not completed: answers are zero-shot labels.")]
    inactive = health.get("inactive_known")
    if inactive is None:
        return []
    if not inactive:
        return [Finding("good", "Every known class gathered enough confident samples.")]
    names = ", ".join(str(name) for name in inactive[:8])
    more = f" and {len(inactive) - 8} more" if len(inactive) > 8 else ""
    level: Literal["look", "bad"] = "bad" if len(inactive) == summary.n_known else "look"
    return [
        Finding(
            level,
            f"{len(inactive)} of {summary.n_known} known classes never gathered "
            f"enough confident samples: {names}{more}. They may be absent from the "
            "stream, or their names may not describe what the pictures show.",
        )
    ]


def _drift(health: dict[str, Any]) -> list[Finding]:
    drift = [d for d in health.get("prototype_drift") or [] if d is not None]
    if not drift:
        return []
    if not np.isfinite(drift).all():
        return [Finding("bad", "Some prototypes are not finite numbers.")]
    largest, median = float(np.max(drift)), float(np.median(drift))
    said = f"(1 - cosine since the warm-up: median {median:.3f}, largest {largest:.3f})"
    if largest > 0.3:
        return [Finding("look", f"At least one prototype moved far from where it began {said}.")]
    return [Finding("good", f"Prototypes stayed near where they began {said}.")]


def _losses(health: dict[str, Any]) -> list[Finding]:
    losses = health.get("realign_losses") or []
    if len(losses) < 2:
        return []
    first, last = float(losses[0]), float(losses[-1])
    if not np.isfinite(losses).all():
        return [
            Finding("bad", "The re-alignment loss is not a finite number: lower the learning rate.")
        ]
    if last > first:
        return [
            Finding(
                "look",
                f"The re-alignment loss went up, from {first:.3f} to {last:.3f}: "
                "a lower learning rate may help.",
            )
        ]
    return [Finding("good", f"Re-alignment lowered the loss from {first:.3f} to {last:.3f}.")]
