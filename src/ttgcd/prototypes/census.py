"""How many novel categories? Where the texts stop telling the clusters of a tree apart.

Ward trees over samples of the reservoir, in two geometries, cut at ever more clusters k. Two votes:

* words: Q(k) = (D A_w)^2 sqrt(A) is highest. D, the share of samples in the largest cluster of each
  best word, falls when a class is split; A_w, the mean cosine to the best word, falls when classes
  are merged; A is as below.
* names: A(k), the mean cosine of the known names to clusters matched one to one, reaches a fixed
  part of what it ever reaches: the known classes show how finely the tree must be cut. This vote
  has weight with many known classes only.

Neither means anything where the names are no better than chance (``trust``). Without any names the
cut with the best silhouette is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.calibration import Geometry, unit
from ttgcd.prototypes.partition import centres_of
from ttgcd.prototypes.text_evidence import Texts

SAMPLES = 2000  # of one tree
TREES = 2  # for reservoirs that hold more samples than one tree takes
RATIO = 1.12  # of the numbers of clusters tried
SMALLEST = 2  # samples of a cluster that has a say
SOFTNESS = 0.03  # how near to the best Q a cut must be to count
REACHED = 0.85  # part of the best one-to-one cosine that the right cut reaches
MANY_NAMES = 25  # known classes at which their vote has half of its final weight
WIDEN = 1.07  # of the range, on either side


@dataclass(frozen=True)
class Census:
    """Categories in all, known ones included: the best guess and a range."""

    total: float
    low: float
    high: float


@dataclass(frozen=True)
class _Cuts:
    """One entry a cut: clusters, D, A_w and A."""

    clusters: np.ndarray
    distinct: np.ndarray
    word: np.ndarray
    names: np.ndarray


def take_census(rows: np.ndarray, texts: Texts, rng: np.random.Generator) -> Census:
    """Count on (samples of) the rows of the reservoir."""
    n_known = len(texts.anchors)
    if len(rows) < 2 * SMALLEST:
        return Census(max(1, n_known), max(1, n_known), max(1, n_known))
    words, names = [], []
    for _ in range(TREES if len(rows) > SAMPLES else 1):
        some = rows
        if len(rows) > SAMPLES:
            some = rows[np.sort(rng.choice(len(rows), SAMPLES, replace=False))]
        centred = unit(some - some.mean(axis=0))
        for mapped in (centred, Geometry.of(some)(some)):
            if not n_known:
                words.append(np.log(_best_silhouette(mapped)))
                names.append(words[-1])
                continue
            cuts = _cut(mapped, centred, texts)
            names.append(np.log(_reached(cuts)))
            # Distinct words need words beside the names; without them the names alone vote.
            words.append(np.log(_most_distinct(cuts)) if len(texts.words) else names[-1])
    weight = 0.5 * n_known**2 / (n_known**2 + MANY_NAMES**2)
    total = (1 - weight) * np.mean(words) + weight * np.mean(names)
    votes = [*words, *names] if weight > 0.1 else words
    low, high = min(*votes, total) - np.log(WIDEN), max(*votes, total) + np.log(WIDEN)
    return Census(float(np.exp(total)), float(np.exp(low)), float(np.exp(high)))


def _cut(mapped: np.ndarray, centred: np.ndarray, texts: Texts) -> _Cuts:
    """Cut the Ward tree of ``mapped``; the clusters meet the texts as means of ``centred``."""
    everything = np.concatenate([texts.anchors, texts.words])
    everything = unit(everything - everything.mean(axis=0))
    names = everything[: len(texts.anchors)]
    # Slow to import: not before it is needed.
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.optimize import linear_sum_assignment

    tree = linkage(mapped, "ward")
    found = []
    for k in _numbers(len(mapped), len(names)):
        labels = fcluster(tree, k, "maxclust") - 1
        count = int(labels.max()) + 1
        for _ in range(3):
            labels = (mapped @ centres_of(mapped, labels, count).T).argmax(axis=1)
        size = np.bincount(labels, minlength=count)
        large, size = size >= SMALLEST, size[size >= SMALLEST]
        means = centres_of(centred, labels, count)[large]
        if not len(means):
            continue
        cosines = means @ everything.T
        one_to_one = cosines[:, : len(names)]
        matched = one_to_one[linear_sum_assignment(-one_to_one)].sum() / len(names)
        largest = np.zeros(len(everything))
        np.maximum.at(largest, cosines.argmax(axis=1), size)
        found.append((len(means), largest.sum() / size.sum(), cosines.max(axis=1).mean(), matched))
    if not found:
        found = [(1, 1.0, 1.0, 1.0)]
    columns = np.array(found, np.float64).T
    return _Cuts(columns[0], columns[1], np.maximum(columns[2], 1e-6), np.maximum(columns[3], 1e-6))


def _best_silhouette(mapped: np.ndarray) -> float:
    """The number of clusters at which a sample is nearest to its own and farthest from others."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from sklearn.metrics import pairwise_distances, silhouette_score

    tree, apart = linkage(mapped, "ward"), pairwise_distances(mapped.astype(np.float64))
    np.fill_diagonal(apart, 0.0)
    best, value = 1, -1.0
    for k in _numbers(len(mapped), 0):
        labels = fcluster(tree, k, "maxclust")
        found = len(np.unique(labels))
        if not 2 <= found < len(mapped):
            continue
        score = float(silhouette_score(apart, labels, metric="precomputed"))
        if score > value:
            best, value = found, score
    return float(best)


def _numbers(samples: int, n_known: int) -> list[int]:
    """Numbers of clusters to try: 2, 3, ... by a constant ratio."""
    numbers, most = [2], min(samples // 2, 6 * n_known + 200)
    while numbers[-1] < most:
        numbers.append(max(numbers[-1] + 1, round(numbers[-1] * RATIO)))
    return [k for k in numbers if k <= max(2, samples // 2)]


def _most_distinct(cuts: _Cuts) -> float:
    quality = (cuts.distinct * cuts.word) ** 2 * np.sqrt(cuts.names)
    weight = np.exp(-(1 - quality / quality.max()) / SOFTNESS)
    return float((weight * cuts.clusters).sum() / weight.sum())


def _reached(cuts: _Cuts) -> float:
    """Where A first reaches its part of the maximum, between cuts by a straight line."""
    part = np.maximum.accumulate(cuts.names) / cuts.names.max()
    place = int(np.argmax(part >= REACHED))
    if place == 0:
        return float(cuts.clusters[0])
    x, y = cuts.clusters[place - 1 : place + 1], part[place - 1 : place + 1]
    return float(x[0] + (x[1] - x[0]) * (REACHED - y[0]) / max(y[1] - y[0], 1e-12))
