"""k-means on unit features, plain and semi-supervised, with the degenerate cases settled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ttgcd.prototypes.bank import weighted_sums


class Clusters(NamedTuple):
    """``labels`` (n,) point into ``centres`` (k, d), which are means and not unit rows."""

    labels: np.ndarray
    centres: np.ndarray


def kmeans(
    features: np.ndarray, k: int, seed: int, n_init: int = 10, max_iter: int = 300
) -> Clusters:
    """Euclidean k-means, k-means++ starts, best of ``n_init``.

    There are never more clusters than distinct points, so fewer than ``k`` centres may come back;
    none for k = 0 or no points.
    """
    from sklearn.cluster import KMeans

    features = np.ascontiguousarray(features, np.float32)
    k = min(k, _distinct(features, k))
    if k == 0:
        return Clusters(np.zeros(len(features), np.int64), features[:0].copy())
    fitted = KMeans(k, n_init=n_init, max_iter=max_iter, random_state=seed).fit(features)
    return Clusters(fitted.labels_.astype(np.int64), fitted.cluster_centers_.astype(np.float32))


def _distinct(features: np.ndarray, enough: int) -> int:
    """The number of distinct points, counted only as far as ``enough``."""
    first = features[: 4 * enough]
    found = len(np.unique(first, axis=0)) if len(first) else 0
    if found >= enough or len(first) == len(features):
        return found
    return len(np.unique(features, axis=0))


def nearest(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The Euclidean nearest centre of every feature; ties to the lowest."""
    return _squared_distances(features, centres).argmin(axis=1)


def _squared_distances(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    lengths = (features * features).sum(axis=1)[:, None] + (centres * centres).sum(axis=1)[None]
    return np.maximum(lengths - 2.0 * features @ centres.T, 0.0)


def name_clusters(centres: np.ndarray, anchors: np.ndarray, n_known: int) -> np.ndarray:
    """A category id for every cluster: the clusters that together fit the text anchors best take
    the known ids, one each; the others are K, K + 1, ... in their order."""
    from scipy.optimize import linear_sum_assignment  # slow to import: not before it is needed

    rows, columns = linear_sum_assignment(-(anchors @ centres.T))
    ids = np.full(len(centres), -1, np.int64)
    ids[columns] = rows
    rest = np.flatnonzero(ids < 0)
    ids[rest] = n_known + np.arange(len(rest))
    return ids


def semi_supervised_kmeans(
    features: np.ndarray,
    labels: np.ndarray,
    n_known: int,
    k: int,
    seed: int,
    restarts: int = 10,
    iterations: int = 10,
    tolerance: float = 1e-4,
) -> Clusters:
    """The k-means of generalised category discovery: labelled samples stay where they are.

    ``labels`` is the class 0..K-1, or -1 for a sample without one. The means of the labelled
    classes are centres from the start, the others are drawn one by one among the unlabelled
    samples with probability proportional to the squared distance (plain k-means++). Cluster ids
    below K are the classes; one whose draw failed keeps an infinite centre and no members.
    """
    features = np.asarray(features, np.float64)
    labelled = labels >= 0
    sums, counts = weighted_sums(
        features[labelled], labels[labelled], np.ones(int(labelled.sum())), n_known
    )
    start = np.full((k, features.shape[1]), np.inf)
    start[:n_known][counts > 0] = sums[counts > 0] / counts[counts > 0, None]
    free = features[~labelled]
    best: Clusters | None = None
    best_inertia = np.inf
    for restart in range(restarts):
        centres = _draw(free, start, np.random.default_rng([seed, restart]))
        assigned = np.zeros(len(features), np.int64)
        distances = np.zeros(len(features))
        for _ in range(iterations):
            assigned, distances = _assign(features, centres, labels)
            sums, counts = weighted_sums(features, assigned, np.ones(len(features)), k)
            moved = centres.copy()
            moved[counts > 0] = sums[counts > 0] / counts[counts > 0, None]
            alive = np.isfinite(centres[:, 0])
            shift = ((moved[alive] - centres[alive]) ** 2).sum()
            centres = moved
            if shift < tolerance:
                break
        assigned, distances = _assign(features, centres, labels)
        if distances.sum() < best_inertia:
            best, best_inertia = Clusters(assigned, centres), distances.sum()
    assert best is not None
    return best


def _assign(
    features: np.ndarray, centres: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Nearest finite centre and its squared distance; labelled samples keep their class."""
    alive = np.flatnonzero(np.isfinite(centres[:, 0]))
    distances = _squared_distances(features, centres[alive])
    assigned = np.where(labels >= 0, labels, alive[distances.argmin(axis=1)])
    place = np.searchsorted(alive, assigned)
    return assigned, distances[np.arange(len(features)), place]


def _draw(free: np.ndarray, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fill the infinite rows of ``start`` by k-means++ among the free samples."""
    centres = start.copy()
    given = centres[np.isfinite(centres[:, 0])]
    nearest_so_far = (
        _squared_distances(free, given).min(axis=1) if len(given) else np.ones(len(free))
    )
    for row in np.flatnonzero(~np.isfinite(centres[:, 0])):
        total = nearest_so_far.sum()
        if total <= 1e-12:
            break
        centres[row] = free[rng.choice(len(free), p=nearest_so_far / total)]
        reduced = _squared_distances(free, centres[row][None])[:, 0]
        nearest_so_far = np.minimum(nearest_so_far, reduced)
    return centres
