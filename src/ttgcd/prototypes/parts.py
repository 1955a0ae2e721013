"""Finer than the categories found: parts of a category, where its members come in clusters.

A category is halved, and its halves again, as long as two clusters explain clearly more of its
members than they would of one Gaussian cloud with the same covariance (SigClust, Liu et al. 2008,
on the leading directions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

#: Members that are looked at: at most so many of a category, and of all categories together.
MOST_MEMBERS, MOST_IN_ALL = 256, 32_768
#: Members of a part, at least.
LEAST = 6
#: Leading directions of a category in which its halves are looked for.
DIRECTIONS = 16
#: Clouds without clusters to compare with, and by how many of their deviations a category must be
#: better explained by its halves than they are by theirs.
CLOUDS, CLEARLY = 16, 3.0
#: The id of part n of category c is the first of these plus c times the second plus n.
FIRST_PART_ID, PARTS_OF_ONE = 10_000_000, 64
#: Directions along which halving begins, and Lloyd steps from there.
_STARTS, _STEPS = 3, 8


@dataclass(frozen=True)
class Parts:
    """The finest groups, sorted by id; those of one category are numbered by size, largest first.

    Parameters
    ----------
    ids
        Stay with a part when its category is merged into another one.
    category
        Which category each part is of.
    centres
        Mean of the members, in the space of ``Looks``.
    """

    ids: np.ndarray
    category: np.ndarray
    centres: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, places: np.ndarray) -> Parts:
        """Some of them."""
        return Parts(self.ids[places], self.category[places], self.centres[places])

    def with_more(self, other: Parts) -> Parts:
        """Both."""
        ids = np.concatenate([self.ids, other.ids])
        category = np.concatenate([self.category, other.category])
        both = Parts(ids, category, np.concatenate([self.centres, other.centres]))
        return both.at(np.argsort(ids, kind="stable"))

    @classmethod
    def whole(cls, category: np.ndarray, centres: np.ndarray) -> Parts:
        """One part a category."""
        return cls(part_id(category), category.astype(np.int64), centres)


def part_id(category: np.ndarray, number: np.ndarray | int = 0) -> np.ndarray:
    """The ids of parts of categories."""
    return FIRST_PART_ID + PARTS_OF_ONE * category.astype(np.int64) + number


@dataclass(frozen=True)
class Looks:
    """Rows as levels compare them: without what all images have in common, of unit length."""

    mean: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Looks:
        return cls(rows.mean(axis=0, dtype=np.float64).astype(np.float32))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        centred = rows.astype(np.float32) - self.mean
        length = np.linalg.norm(centred, axis=1, keepdims=True)
        return np.divide(centred, length, out=np.zeros_like(centred), where=length > 1e-6)


def find_parts(
    read: Callable[[np.ndarray], np.ndarray],
    category: np.ndarray,
    categories: np.ndarray,
    most: int | None = None,
) -> Parts:
    """The parts of each of ``categories``, all of which have members.

    ``category`` is that of every sample; ``read`` gives the looks of samples at some places. With
    ``most`` only as many categories are split as make so many parts, the clearest splits first.
    """
    allowed = int(np.clip(MOST_IN_ALL // max(1, len(categories)), 1, MOST_MEMBERS))
    order = np.argsort(category, kind="stable")
    begins = np.searchsorted(category[order], categories)
    ends = np.searchsorted(category[order], categories, side="right")
    found: list[tuple[np.ndarray, list[float]]] = []  # centres, clearness of the splits
    means = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        members = np.sort(order[begin:end])
        some = members[np.linspace(0, len(members) - 1, min(len(members), allowed)).astype(int)]
        rows = read(some)
        labels, clearness = _split(rows)
        found.append((_centres(rows, labels), clearness))
        means.append(rows.mean(axis=0))
    if most is not None:
        _keep_clearest(found, means, most)
    sizes = [len(centres) for centres, _ in found]
    width = means[0].shape[0] if means else 0
    owner = np.repeat(categories, sizes).astype(np.int64)
    number = np.concatenate([np.zeros(0, np.int64), *(np.arange(size) for size in sizes)])
    centres = np.concatenate([np.zeros((0, width), np.float32), *(part for part, _ in found)])
    return Parts(part_id(owner, number), owner, centres)


def nearest_parts(parts: Parts, looks: np.ndarray, category: np.ndarray) -> np.ndarray:
    """For each row the place of the nearest part of its own category; -1 where that has none."""
    place = np.full(len(looks), -1, np.int64)
    for c in np.unique(category):
        own = np.flatnonzero(parts.category == c)
        if len(own) == 0:
            continue
        mine = np.flatnonzero(category == c)
        if len(own) == 1:
            place[mine] = own[0]
            continue
        centres = parts.centres[own]
        distance = (centres**2).sum(axis=1) / 2 - looks[mine] @ centres.T
        place[mine] = own[distance.argmin(axis=1)]
    return place


def _keep_clearest(
    found: list[tuple[np.ndarray, list[float]]], means: list[np.ndarray], most: int
) -> None:
    """Make the categories whose splits are least clear whole again until at most ``most`` parts
    are left."""
    left = sum(len(centres) for centres, _ in found)
    by_clearness = sorted((min(c), at) for at, (_, c) in enumerate(found) if c)
    for _, at in by_clearness:
        if left <= most:
            return
        left -= len(found[at][0]) - 1
        found[at] = (means[at][None], [])


def _centres(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean of the rows of each label, the largest first."""
    sizes = np.bincount(labels)
    order = np.argsort(-sizes, kind="stable")
    return np.stack([rows[labels == label].mean(axis=0) for label in order]).astype(np.float32)


def _split(rows: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Labels of the parts and how clear each split was, in deviations."""
    labels = np.zeros(len(rows), np.int64)
    clearness: list[float] = []
    waiting = [0]
    while waiting:
        label = waiting.pop()
        own = np.flatnonzero(labels == label)
        half, clear = halves(rows[own])
        if clear < CLEARLY:
            continue
        clearness.append(clear)
        new = int(labels.max()) + 1
        labels[own[half]] = new
        waiting += [label, new]
    return labels, clearness


def halves(rows: np.ndarray) -> tuple[np.ndarray, float]:
    """The two clusters of some rows (a mask), and by how many deviations they explain the rows
    better than the halves of clouds explain these; minus infinity where rows are too few."""
    n = len(rows)
    none = np.zeros(n, bool), -np.inf
    if n < 2 * LEAST:
        return none
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    values, vectors = values[::-1][:DIRECTIONS], vectors[:, ::-1][:, :DIRECTIONS]
    kept = values > 1e-9 * max(float(values[0]), 1e-9)
    if not kept.any():  # all alike
        return none
    scale = np.sqrt(values[kept])
    # The sign of an axis means nothing: let it be that of its largest entry.
    axes = vectors[:, kept]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    masks, left = _two_means(np.concatenate([axes[None], _clouds(n, len(scale))]) * scale)
    half = masks[0]
    if min(half.sum(), n - half.sum()) < LEAST:
        return none
    usual, deviation = left[1:].mean(), max(float(left[1:].std(ddof=1)), 1e-6)
    return half, float((usual - left[0]) / deviation)


@lru_cache(8)
def _clouds(n: int, directions: int) -> np.ndarray:
    """Gaussian clouds turned and stretched until their axes are as long as those of any other rows:
    a covariance measured on few rows is wider than the true one, and clouds drawn from it wider
    still. Always the same ones: nothing else is drawn here."""
    drawn = np.random.default_rng(0).normal(size=(CLOUDS, n, directions))
    return np.linalg.qr(drawn - drawn.mean(axis=1, keepdims=True))[0]


def _two_means(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2-means of each of several sets (s, n, r), the best of a few starts: masks, and the share of
    the variance that is left within the two clusters."""
    points = points - points.mean(axis=1, keepdims=True)
    total = np.maximum((points**2).sum(axis=(1, 2)), 1e-12)
    n = points.shape[1]
    best, least = np.zeros(points.shape[:2], bool), np.full(len(points), np.inf)
    for axis in range(min(_STARTS, points.shape[2])):
        half = points[:, :, axis] > 0
        for _ in range(_STEPS):
            # With the mean at 0 the clusters' means are opposite: one direction tells all.
            size = half.sum(axis=1).clip(1, n - 1)[:, None]
            mean = np.einsum("sn,snr->sr", half, points)
            one, other = mean / size, -mean / (n - size)
            border = ((one**2).sum(axis=1) - (other**2).sum(axis=1)) / 2
            half = np.einsum("snr,sr->sn", points, one - other) > border[:, None]
        size = half.sum(axis=1)
        mean = np.einsum("sn,snr->sr", half, points)
        between = (mean**2).sum(axis=1) * (1 / np.maximum(size, 1) + 1 / np.maximum(n - size, 1))
        left = 1 - between / total
        better = left < least - 1e-12
        best[better], least = half[better], np.minimum(least, left)
    return best, least
