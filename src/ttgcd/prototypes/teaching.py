"""Corrections teach: what a user put right is evidence for its neighbours.

A corrected sample is clamped: it stays where the user put it and weighs more than others in its
category's prototype. A merged category keeps the prototypes of both, so that neither half is lost
to a mean that is like none of them. Then the neighbours answer again by the nearest prototype
(Eq. 9), only where a correction reaches: samples of corrected categories may go anywhere, all
others only into a corrected one. The encoder is not touched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.confidence import Rows

#: What a clamped sample weighs in a prototype. Between 4 and 10 it makes no difference.
CLAMPED_WEIGHT = 4.0
#: Rounds of answering and averaging; IconShift settles within three.
ROUNDS = 3
_AT_ONCE = 16_384


@dataclass(frozen=True)
class Lessons:
    """How the parts of categories look after corrections, and how far the corrections reach.

    Parameters
    ----------
    parts: ids of the parts, ascending.
    centres: their prototypes, unit rows.
    reached: which parts belong to a category that corrections are about.
    """

    parts: np.ndarray
    centres: np.ndarray
    reached: np.ndarray

    def answer(self, features: Rows, given: np.ndarray) -> np.ndarray:
        """The part that each sample goes to from the ``given`` one: the nearest that it may go to.

        Samples of corrected categories may go anywhere, all others only into a corrected one; a
        sample of a part that is not among these stays.
        """
        at = np.minimum(np.searchsorted(self.parts, given), len(self.parts) - 1)
        here = self.parts[at] == given
        best = _nearest(features, at, self.centres, self.reached)
        return np.where(here, self.parts[best], given)


def follow(
    features: Rows,
    parts: np.ndarray,
    clamped: np.ndarray,
    owner: Mapping[int, int],
    taught: Collection[int],
) -> tuple[np.ndarray, Lessons | None]:
    """Where samples go after corrections.

    Parameters
    ----------
    features: unit rows (n, d), in memory or on disk.
    parts: the part of a category that each sample is in (n,): the category itself, unless
        categories were merged.
    clamped: samples that the user put where they are (n,).
    owner: the category that a part belongs to, for parts that were merged away.
    taught: categories that corrections are about.

    Returns
    -------
    The new parts, and what was learned for further samples. Clamped samples stay; everything stays,
    and there are no lessons, when nothing was taught.
    """
    if not len(parts) or not taught:
        return parts, None
    parts = parts.copy()
    for _ in range(ROUNDS):
        lessons = _learned(features, parts, clamped, owner, taught)
        best = lessons.answer(features, parts)
        moving = ~clamped & (best != parts)
        if not moving.any():
            return parts, lessons
        parts[moving] = best[moving]
    return parts, _learned(features, parts, clamped, owner, taught)


def _learned(
    features: Rows,
    parts: np.ndarray,
    clamped: np.ndarray,
    owner: Mapping[int, int],
    taught: Collection[int],
) -> Lessons:
    ids, at = np.unique(parts, return_inverse=True)
    reached = np.array([owner.get(int(part), int(part)) in taught for part in ids])
    return Lessons(ids, _centres(features, at.ravel(), clamped, len(ids)), reached)


def two_halves(features: np.ndarray, seed: int = 0, rounds: int = 20) -> np.ndarray:
    """Which samples of a group form its smaller half: spherical 2-means from the two samples that
    are farthest apart along the first principal direction. All False when they are all alike."""
    rows = features.astype(np.float64)
    centred = rows - rows.mean(axis=0)
    start = np.random.default_rng(seed).standard_normal(centred.shape[1])
    for _ in range(20):  # power iteration
        start = centred.T @ (centred @ start)
        length = np.linalg.norm(start)
        if length == 0:
            return np.zeros(len(rows), bool)
        start /= length
    along = centred @ start
    half = along > np.median(along)
    for _ in range(rounds):
        if half.all() or not half.any():
            return np.zeros(len(rows), bool)
        one, other = normalise(rows[half].mean(axis=0)), normalise(rows[~half].mean(axis=0))
        again = rows @ one > rows @ other
        if (again == half).all():
            break
        half = again
    return half if 2 * half.sum() <= len(half) else ~half


def _centres(features: Rows, at: np.ndarray, clamped: np.ndarray, count: int) -> np.ndarray:
    sums = np.zeros((count, features[:1].shape[1]))
    for begin in range(0, len(at), _AT_ONCE):
        rows = slice(begin, begin + _AT_ONCE)
        weight = np.where(clamped[rows], CLAMPED_WEIGHT, 1.0)
        np.add.at(sums, at[rows], features[rows].astype(np.float64) * weight[:, None])
    return normalise(sums).astype(np.float32)


def _nearest(
    features: Rows, at: np.ndarray, centres: np.ndarray, reached: np.ndarray
) -> np.ndarray:
    """The nearest part that a sample may go to; its own when none is nearer."""
    best = at.copy()
    for begin in range(0, len(at), _AT_ONCE):
        own = at[begin : begin + _AT_ONCE]
        block = features[begin : begin + _AT_ONCE].astype(np.float32)
        cosines = block @ centres.T
        # A sample of a category that nobody corrected goes only into a corrected one.
        cosines[np.ix_(~reached[own], ~reached)] = -np.inf
        rows = np.arange(len(own))
        cosines[rows, own] = (block * centres[own]).sum(axis=1)
        nearest = cosines.argmax(axis=1)
        closer = cosines[rows, nearest] > cosines[rows, own] + 1e-6
        best[begin : begin + _AT_ONCE] = np.where(closer, nearest, own)
    return best
