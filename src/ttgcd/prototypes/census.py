"""How many categories? Where geometry and names agree on how finely a tree is to be cut.

A sample of the reservoir, in which what is nearly the same counts once, is cut into ever more
clusters, by two Ward trees. Each cut has up to four qualities, each scaled to 0..1 over the cuts:

* apart: the silhouette of the tree over the rows, less that of a null: a Gaussian of the same mean
  and covariance, which has no clusters (silhouettes rise towards pairs by themselves);
* near: the silhouette, over the rows, of the tree over means of near rows, which could not fit it;
* names: the adjusted mutual information of the clusters with the known names, on the samples that
  the names are sure of;
* words: (D A_w)^2 sqrt(A). D, the share of samples in the largest cluster of each best word, falls
  when a class is split; A_w, the mean cosine to the best word, falls when classes are merged; A is
  the mean cosine of the known names to clusters matched one to one.

They decide by how much they have to say here: geometry as far as near rises above its null, names
as far as they agree better than names turned at random, words where geometry is silent. Without
names geometry decides alone; then its nulls count more, and no cut is trusted whose clusters have
but a few members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.calibration import Geometry, Standard, unit
from ttgcd.prototypes.cells import regions
from ttgcd.prototypes.curve import Curve, running_mean, scaled
from ttgcd.prototypes.neighbourhood import among_near
from ttgcd.prototypes.partition import centres_of
from ttgcd.prototypes.silhouette import silhouette
from ttgcd.prototypes.text_evidence import CONFIDENT, Texts, confident
from ttgcd.prototypes.trust import reliability, turned

SAMPLES = 2500
RATIO = 1.1  # of the numbers of clusters tried
#: Members of a cluster in the mean, at least, where no name speaks.
MEMBERS = 6
#: A row nearer than this cosine to one before it is counted with that: frames of a film, copies.
#: Where this leaves fewer than ``MEMBERS`` rows a known class, or very few at all, classes are as
#: narrow as that, and the next cosine is asked for.
SAME, VERY_FEW = (0.7, 0.8, 0.9, 0.95), 100
#: How much of the null's silhouette is taken off: from apart, and from near where no name speaks.
NULL, NEAR_NULL_ALONE = 0.7, 1.5
#: From this share of the finest cut on the sample is too small, without names and with them; then
#: the count is made in so many regions of so many rows in the mean.
TOO_MANY, TOO_MANY_NAMED = 0.95, 0.7
REGIONS, REGION_ROWS = 4, 1500
#: Near rises by so much above its null where geometry says nothing, and where it has all to say.
SILENT, CLEAR = 0.04, 0.08
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
    """Count on (a sample of) the rows of the reservoir; region by region where there are so many
    categories that a sample has but a few rows of each."""
    found = _on_sample(rows, texts, rng)
    if len(rows) <= SAMPLES or found.curve is None:
        return found
    most = TOO_MANY if len(texts.anchors) < 2 else TOO_MANY_NAMED
    if found.total < most * found.curve.clusters.max():
        return found
    return _by_region(rows, texts, rng)


def _by_region(rows: np.ndarray, texts: Texts, rng: np.random.Generator) -> Census:
    """Count in some regions, in which all rows of a category are together, and scale up. Geometry
    decides alone: there are few names in a region."""
    none = Texts(texts.anchors[:0], texts.words[:0], texts.scale)
    # The mean of a row and those next to it lies inside of its category, which so is in one region.
    smoothed = among_near(Geometry.of(rows)(rows))
    places = regions(smoothed, round(len(rows) / REGION_ROWS), rng)
    places = [place for place in places if len(place) <= SAMPLES][:REGIONS]
    counts = [_on_sample(rows[place], none, rng) for place in places]
    share = len(rows) / sum(map(len, places))
    low, total, high = (
        max(1, len(texts.anchors), share * sum(getattr(count, what) for count in counts))
        for what in ("low", "total", "high")
    )
    return Census(total, low, high)


def _on_sample(rows: np.ndarray, texts: Texts, rng: np.random.Generator) -> Census:
    n_known = len(texts.anchors)
    least = max(1, n_known)
    some = rows
    if len(rows) > SAMPLES:
        some = rows[np.sort(rng.choice(len(rows), SAMPLES, replace=False))]
    if len(some):
        some = some[different(Geometry.of(some)(some), n_known)]
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


def different(mapped: np.ndarray, n_known: int) -> np.ndarray:
    """Places of the rows that are left when what is nearly the same counts once."""
    for same in SAME:
        places = leaders(mapped, same)
        if len(places) >= max(VERY_FEW, MEMBERS * n_known):
            break
    return places


def leaders(mapped: np.ndarray, same: float) -> np.ndarray:
    """Places of the rows that are not nearer than a cosine to a leader before them."""
    left, out = np.ones(len(mapped), bool), []
    for place in range(len(mapped)):
        if left[place]:
            out.append(place)
            left &= mapped @ mapped[place] <= same
    return np.array(out, np.int64)


@dataclass(frozen=True)
class _Cuts:
    """``quality`` of cutting into so many ``clusters`` of two members or more."""

    clusters: np.ndarray
    quality: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, texts: Texts, rng: np.random.Generator) -> _Cuts:
        mapped = Geometry.of(rows)(rows)
        null = _shape_of(mapped, rng)
        names = _Names.of(rows, texts) if len(texts.anchors) > 1 else None
        speakers = _Speakers.of(rows, texts) if len(texts.anchors) and len(texts.words) else None
        clusters, apart, named, spoken = [], [], [], []
        for labels in _tree(mapped, LLOYD):
            clusters.append(_of_two(labels))
            apart.append(silhouette(mapped, labels))
            named.append((0.0, 0.0) if names is None else names.agree(labels))
            spoken.append(0.0 if speakers is None else speakers.quality(labels))
        count = np.array(clusters, np.float64)
        shapeless = np.array([silhouette(null, labels) for labels in _tree(null, LLOYD)])
        near, nothing = _near(mapped, count), _near(null, count)
        geometry = scaled(np.array(apart) - NULL * shapeless)
        if not len(texts.anchors):
            quality = geometry + scaled(near - NEAR_NULL_ALONE * nothing)
            allowed = count * MEMBERS <= max(len(rows), MEMBERS * count.min())
            return cls(count[allowed], quality[allowed])
        strength = 1.0
        if names is not None or speakers is not None:
            above = running_mean(near - nothing).max()
            strength = float(np.clip((above - SILENT) / (CLEAR - SILENT), 0, 1))
        quality = strength * (geometry + scaled(near)) + (1 - strength) * scaled(np.array(spoken))
        agree, chance = np.array(named).T
        return cls(count, quality + reliability(agree.max(), chance.max(), FULL) * scaled(agree))


def _near(rows: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The silhouette, over the rows, of cuts of the tree over means of near rows, at so many
    clusters."""
    cuts = [(_of_two(labels), silhouette(rows, labels)) for labels in _tree(among_near(rows), 0)]
    places, values = np.array(cuts).T
    order = np.argsort(places, kind="stable")
    return np.interp(clusters, places[order], values[order])


@dataclass(frozen=True)
class _Speakers:
    """Names and words, and the rows as they see them: centred on their own means."""

    rows: np.ndarray
    texts: np.ndarray  # the names first
    n_known: int

    @classmethod
    def of(cls, rows: np.ndarray, texts: Texts) -> _Speakers:
        everything = np.concatenate([texts.anchors, texts.words])
        centred = unit(everything - everything.mean(axis=0))
        return cls(unit(rows - rows.mean(axis=0)), centred, len(texts.anchors))

    def quality(self, labels: np.ndarray) -> float:
        """(D A_w)^2 sqrt(A) over the clusters of two members or more."""
        from scipy.optimize import linear_sum_assignment  # slow to import

        size = np.bincount(labels)
        large = size >= 2
        if not large.any():
            return 0.0
        cosines = centres_of(self.rows, labels, len(size))[large] @ self.texts.T
        best, size = cosines.argmax(axis=1), size[large]
        largest = np.zeros(len(self.texts))
        np.maximum.at(largest, best, size)
        distinct, word = largest.sum() / size.sum(), cosines.max(axis=1).mean()
        one_to_one = cosines[:, : self.n_known]
        named = one_to_one[linear_sum_assignment(-one_to_one)].sum() / self.n_known
        return float((distinct * max(word, 1e-6)) ** 2 * np.sqrt(max(named, 1e-6)))


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
