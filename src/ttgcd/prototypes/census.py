"""How many categories? Where geometry and names agree on how finely a tree is to be cut.

A sample of the reservoir, in which what is nearly the same counts once, is cut into ever more
clusters, by two Ward trees. Each cut has up to three qualities, each scaled to 0..1 over the cuts:

* apart: the silhouette of the tree over the rows, less that of a Gaussian of the same mean and
  covariance, which has no clusters (silhouettes rise towards pairs by themselves);
* near: the silhouette, over the rows, of the tree over means of near rows, which could not fit it;
* names: the adjusted mutual information of the clusters with the known names, on the samples that
  the names are sure of; it counts as far as it is higher than with names turned at random.

Without names geometry decides alone; then the null is taken more than once, and no cut is trusted
whose clusters have but a few members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.calibration import Geometry, Standard, unit
from ttgcd.prototypes.curve import Curve, scaled
from ttgcd.prototypes.neighbourhood import among_near
from ttgcd.prototypes.partition import centres_of
from ttgcd.prototypes.silhouette import silhouette
from ttgcd.prototypes.text_evidence import CONFIDENT, Texts, confident
from ttgcd.prototypes.trust import reliability, turned

SAMPLES = 2500
RATIO = 1.1  # of the numbers of clusters tried
#: A row nearer than this cosine to one before it is counted with that: frames of a film, copies.
SAME = 0.7
#: How much of the null's silhouette is taken off, with names and without.
NULL, NULL_ALONE = 0.7, 1.5
#: Members of a cluster in the mean, at least, where no name speaks.
MEMBERS = 6
#: Agreement above chance, of what chance leaves, from which on names count fully.
FULL = 0.3
LLOYD = 3  # steps after a cut
#: How near to the best quality a cut must be to count, and to be in the range.
SOFTNESS, IN_RANGE = 0.03, 0.15


@dataclass(frozen=True)
class Census:
    """Categories in all, known ones included: the best guess, a range, and how good each number
    would be."""

    total: float
    low: float
    high: float
    curve: Curve | None = None


def take_census(rows: np.ndarray, texts: Texts, rng: np.random.Generator) -> Census:
    """Count on (a sample of) the rows of the reservoir."""
    n_known = len(texts.anchors)
    least = max(1, n_known)
    some = rows
    if len(rows) > SAMPLES:
        some = rows[np.sort(rng.choice(len(rows), SAMPLES, replace=False))]
    if len(some):
        some = some[leaders(Geometry.of(some)(some))]
    if len(some) < 4:
        return Census(least, least, least)
    cuts = _Cuts.of(some, texts, rng)
    quality, clusters = cuts.quality, cuts.clusters
    weight = np.exp((quality - quality.max()) / SOFTNESS)
    total = float(np.exp((weight * np.log(clusters)).sum() / weight.sum()))
    within = clusters[quality >= quality.max() - IN_RANGE]
    low, high = float(min(total, within.min())), float(max(total, within.max()))
    ascending, first = np.unique(clusters, return_index=True)
    curve = Curve(ascending.astype(np.float64), quality[first])
    return Census(max(least, total), max(least, low), max(least, high), curve)


def leaders(mapped: np.ndarray) -> np.ndarray:
    """Places of the rows that are not nearly the same as a leader before them."""
    left, out = np.ones(len(mapped), bool), []
    for place in range(len(mapped)):
        if left[place]:
            out.append(place)
            left &= mapped @ mapped[place] <= SAME
    return np.array(out, np.int64)


@dataclass(frozen=True)
class _Cuts:
    """``quality`` of cutting into so many ``clusters`` of two members or more."""

    clusters: np.ndarray
    quality: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, texts: Texts, rng: np.random.Generator) -> _Cuts:
        mapped = Geometry.of(rows)(rows)
        names = _Names.of(rows, texts) if len(texts.anchors) > 1 else None
        clusters, apart, named = [], [], []
        for labels in _tree(mapped, LLOYD):
            clusters.append(_of_two(labels))
            apart.append(silhouette(mapped, labels))
            named.append((0.0, 0.0) if names is None else names.agree(labels))
        shape = _shape_of(mapped, rng)
        null = np.array([silhouette(shape, labels) for labels in _tree(shape, LLOYD)])
        near = [(_of_two(x), silhouette(mapped, x)) for x in _tree(among_near(mapped), 0)]
        count = np.array(clusters, np.float64)
        places, values = np.array(near).T
        order = np.argsort(places, kind="stable")
        nearer = scaled(np.interp(count, places[order], values[order]))
        taken = NULL_ALONE if names is None else NULL
        quality = scaled(np.array(apart) - taken * null) + nearer
        if names is None:
            allowed = count * MEMBERS <= max(len(rows), MEMBERS * count.min())
            return cls(count[allowed], quality[allowed])
        agree, chance = np.array(named).T
        weight = reliability(agree.max(), chance.max(), FULL)
        return cls(count, quality + weight * scaled(agree))


@dataclass(frozen=True)
class _Names:
    """Which name the confident half of each name's samples has, for the names and turned ones."""

    says: tuple[np.ndarray, np.ndarray]
    sure: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, rows: np.ndarray, texts: Texts) -> _Names:
        said, sure = [], []
        for names in (texts, turned(texts)):
            logits = Standard.of(rows, names.anchors)(rows)
            said.append(logits.argmax(axis=1))
            gate = names.gate(rows, logits)
            sure.append(confident(said[-1], gate, len(names.anchors), CONFIDENT))
        return cls((said[0], said[1]), (sure[0], sure[1]))

    def agree(self, labels: np.ndarray) -> tuple[float, float]:
        """Adjusted mutual information with the names, and with turned ones."""
        from sklearn.metrics import adjusted_mutual_info_score

        first, second = (
            float(adjusted_mutual_info_score(says[sure], labels[sure]))
            for says, sure in zip(self.says, self.sure, strict=True)
        )
        return first, second


def _tree(rows: np.ndarray, steps: int) -> Iterator[np.ndarray]:
    """Labels at ever finer cuts of a Ward tree over the rows, after so many Lloyd steps."""
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import

    tree = linkage(rows, "ward")
    for k in numbers(len(rows)):
        labels = fcluster(tree, k, "maxclust") - 1
        count = int(labels.max()) + 1
        for _ in range(steps):
            labels = (rows @ centres_of(rows, labels, count).T).argmax(axis=1)
        yield labels


def numbers(samples: int) -> list[int]:
    """Numbers of clusters to try: 2, 3, ... by a constant ratio up to half of the samples."""
    out = [2]
    while (k := max(out[-1] + 1, round(out[-1] * RATIO))) <= samples // 2:
        out.append(k)
    return out


def _of_two(labels: np.ndarray) -> int:
    """Clusters of two members or more, at least one."""
    return max(1, int((np.bincount(labels) >= 2).sum()))


def _shape_of(mapped: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unit rows of a Gaussian of the same mean and covariance: the shape, but no clusters."""
    values, directions = np.linalg.eigh(np.cov(mapped.T, dtype=np.float64))
    drawn = rng.normal(size=mapped.shape) * np.sqrt(np.maximum(values, 0))
    return unit(mapped.mean(axis=0) + drawn @ directions.T)
