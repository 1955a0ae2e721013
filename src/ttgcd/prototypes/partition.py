"""Spherical clustering with a text bonus: seeds, Lloyd steps, and restarts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.neighbourhood import nearest

NEIGHBOURS = 3
CANDIDATES = 8
STEPS = 25
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


def lloyd(
    rows: np.ndarray,
    centres: np.ndarray,
    bonus: np.ndarray,
    n_known: int,
    expected: float,
    steps: int = STEPS,
) -> Partition:
    """Alternate argmax_c (row . centre_c + bonus_c) and unit weighted means.

    A sample counts by a logistic function of its bonus, so that those that a class holds against
    the word of the text hardly move it; ``expected`` is the bonus of a known class's usual member.
    """
    labels = None
    for _ in range(steps):
        now = (rows @ centres.T + bonus).argmax(axis=1)
        if labels is not None and np.array_equal(now, labels):
            break
        labels = now
        mine = bonus[np.arange(len(now)), now] - expected * (now < n_known)
        weight = 1 / (1 + np.exp(-SHARPNESS * mine))
        sums = group_sums(rows * weight[:, None].astype(np.float32), now, len(centres))
        some = np.linalg.norm(sums, axis=1, keepdims=True) > 1e-6
        centres = np.where(some, unit(sums), centres).astype(np.float32)
    scores = rows @ centres.T + bonus
    return Partition(scores.argmax(axis=1), centres, float(scores.max(axis=1).mean()))


def smooth(rows: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
    """Each row with the mean of its nearest neighbours: seeds then lie inside of classes."""
    near = nearest(rows, NEIGHBOURS) if near is None else near
    return unit(rows + rows[near].mean(axis=1)) if near.shape[1] else rows


def spread_seeds(
    rows: np.ndarray, best: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Places of ``count`` rows chosen by greedy k-means++: each the best of eight drawn by how
    badly the rows are explained so far (``best``: score of the best centre that there is)."""
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
    bonus: np.ndarray,
    n_known: int,
    expected: float,
    restarts: int,
    rng: np.random.Generator,
    smoothed: np.ndarray | None = None,
) -> Partition:
    """The best of several partitions with known centres at the confident samples (``known`` are
    the names, ``keep`` the mask) and spread seeds for the others; found on smoothed rows first."""
    count = bonus.shape[1]
    smoothed = smooth(rows) if smoothed is None else smoothed
    named = centres_of(smoothed[keep], known[keep], n_known)
    explained = (smoothed @ named.T + bonus[:, :n_known]).max(axis=1, initial=-1.0)
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
