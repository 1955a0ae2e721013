"""Spherical clustering with a text bonus: seeds, Lloyd steps, and restarts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.many import blocks, is_many, spread_in_batches
from ttgcd.prototypes.neighbourhood import nearest
from ttgcd.prototypes.row_bonus import RowBonus

NEIGHBOURS = 3
CANDIDATES = 8
STEPS = 25
#: One in so many rows may still move when many categories are clustered well enough.
STILL = 1000
#: How sharply a sample counts less for a centre that its text speaks against.
SHARPNESS = 20.0


@dataclass(frozen=True, eq=False)
class Partition:
    """``labels`` (n,) point into ``centres``; ``value`` is the mean of the best score. Equal to
    itself alone, so that what was worked out for one can be remembered."""

    labels: np.ndarray
    centres: np.ndarray
    value: float


def group_sums(rows: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """The sum of the rows of every label 0..count-1."""
    n = len(labels)
    one_hot = sparse.csr_matrix((np.ones(n, np.float32), (labels, np.arange(n))), shape=(count, n))
    return np.asarray(one_hot @ rows)


def centres_of(rows: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Unit mean direction of every label; zero where it has no row."""
    return unit(group_sums(rows, labels, count))


def assigned(
    rows: np.ndarray, centres: np.ndarray, bonus: RowBonus
) -> tuple[np.ndarray, np.ndarray]:
    """The best category of every row by row . centre_c + bonus_c, and that score."""
    labels, best = np.empty(len(rows), np.int64), np.empty(len(rows), np.float32)
    for part in blocks(len(rows), len(centres)):
        scores = rows[part] @ centres.T
        bonus.add_to(scores, part)
        labels[part], best[part] = scores.argmax(axis=1), scores.max(axis=1)
    return labels, best


def lloyd(
    rows: np.ndarray,
    centres: np.ndarray,
    bonus: RowBonus,
    n_known: int,
    expected: float,
    steps: int = STEPS,
) -> Partition:
    """Alternate argmax_c (row . centre_c + bonus_c) and unit weighted means.

    A sample counts by a logistic function of its bonus, so that those that a class holds against
    the word of the text hardly move it; ``expected`` is the bonus of a known class's usual member.
    """
    labels = None
    still = len(rows) // STILL if is_many(len(centres)) else 0
    for _ in range(steps):
        now, _ = assigned(rows, centres, bonus)
        if labels is not None and np.count_nonzero(now != labels) <= still:
            break
        labels = now
        mine = bonus.of_labels(now) - expected * (now < n_known)
        weight = 1 / (1 + np.exp(-SHARPNESS * mine))
        sums = group_sums(rows * weight[:, None].astype(np.float32), now, len(centres))
        some = np.linalg.norm(sums, axis=1, keepdims=True) > 1e-6
        centres = np.where(some, unit(sums), centres).astype(np.float32)
    labels, best = assigned(rows, centres, bonus)
    return Partition(labels, centres, float(best.mean()))


def smooth(
    rows: np.ndarray, near: np.ndarray | None = None, of: np.ndarray | None = None
) -> np.ndarray:
    """Each row, or those at the places ``of``, with the mean of its nearest neighbours: seeds then
    lie inside of classes."""
    near = nearest(rows, NEIGHBOURS, of) if near is None else near
    these = rows if of is None else rows[of]
    return unit(these + rows[near].mean(axis=1)) if near.shape[1] else these


def spread_seeds(
    rows: np.ndarray, best: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Places of ``count`` rows chosen by greedy k-means++: each the best of eight drawn by how
    badly the rows are explained so far (``best``: score of the best centre that there is)."""
    if is_many(count):
        return spread_in_batches(rows, best, count, rng)
    best = np.minimum(best, 1)
    chosen = []
    for _ in range(count):
        lack = np.maximum(1e-9, 1 - best).astype(np.float64)
        tried = rng.choice(len(rows), size=CANDIDATES, p=lack / lack.sum())
        after = np.maximum(best[:, None], rows @ rows[tried].T)
        gain = int(after.sum(axis=0).argmax())
        best = after[:, gain]
        chosen.append(tried[gain])
    return np.array(chosen, np.int64)


def from_seeds(
    rows: np.ndarray,
    known: np.ndarray,
    keep: np.ndarray,
    bonus: RowBonus,
    n_known: int,
    expected: float,
    restarts: int,
    rng: np.random.Generator,
    smoothed: np.ndarray | None = None,
) -> Partition:
    """The best of several partitions with known centres at the confident samples (``known`` are
    the names, ``keep`` the mask) and spread seeds for the others; found on smoothed rows first."""
    count = bonus.count
    restarts = 1 if is_many(count) else restarts
    smoothed = smooth(rows) if smoothed is None else smoothed
    named = centres_of(smoothed[keep], known[keep], n_known)
    explained = (smoothed @ named.T + bonus.first(n_known)).max(axis=1, initial=-1.0)
    found: Partition | None = None
    for _ in range(restarts):
        seeds = spread_seeds(smoothed, explained, count - n_known, rng)
        start = np.concatenate([named, smoothed[seeds]])
        tried = lloyd(smoothed, start, bonus, n_known, expected)
        if found is None or tried.value > found.value:
            found = tried
    assert found is not None
    centres = centres_of(rows, found.labels, count)
    return lloyd(rows, centres, bonus, n_known, expected)
