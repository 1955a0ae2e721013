"""Was the buffer like the rest of the stream? Everything that was built on it rests on that."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

#: A known class is late when chance explains as rarely as this that the buffer has none of all.
_BY_CHANCE = 0.01


def late_names(category: np.ndarray, buffered: int, known: Sequence[str]) -> list[str]:
    """Known classes whose samples all came after the first ``buffered`` ones.

    A rare class may be absent from a fair buffer: only what chance does not explain is said, for
    all known classes together.

    >>> late_names(np.array([0] * 100 + [1] * 100 + [0] * 100), 100, ["a", "b"])
    ['b']
    >>> late_names(np.array([0] * 100 + [0, 1]), 100, ["a", "b"])
    []
    """
    if not 0 < buffered < len(category):
        return []
    n_known = len(known)
    early, late = category[:buffered], category[buffered:]
    among_first = np.bincount(early[early < n_known], minlength=n_known)
    after = np.bincount(late[late < n_known], minlength=n_known)
    chance = n_known * (1 - buffered / len(category)) ** after
    there = (among_first == 0) & (after > 0) & (chance < _BY_CHANCE)
    return [known[k] for k in np.flatnonzero(there).tolist()]


def excess_distance(one: np.ndarray, other: np.ndarray) -> float:
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


def fit_drop(score: np.ndarray, kinds: Sequence[np.ndarray], buffered: int) -> float:
    """By how many standard deviations the samples after the buffer score lower than those in it,
    each of ``kinds`` (masks: known, novel) compared with its own."""
    early = np.arange(len(score)) < buffered
    spread = float(score.std())
    drops, weights = [0.0], [0]
    for kind in kinds:
        before, after = score[kind & early], score[kind & ~early]
        if len(before) >= 10 and len(after) >= 10 and spread > 0:
            drops.append(float(before.mean() - after.mean()) / spread)
            weights.append(len(after))
    return float(np.average(drops, weights=weights)) if sum(weights) else 0.0
