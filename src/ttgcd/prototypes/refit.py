"""Fit the linear model to the reservoir: calibrate, trust, cluster, let the words speak.

A pure function of the reservoir, the texts, the number of novel categories and the model before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.calibration import Geometry, Standard
from ttgcd.prototypes.linear_model import LinearModel, Space
from ttgcd.prototypes.many import MANY, blocks, is_many
from ttgcd.prototypes.partition import centres_of, smooth, spread_seeds
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.silhouette import silhouette
from ttgcd.prototypes.spoken import Listener, Spoken
from ttgcd.prototypes.starts import Sample, starts
from ttgcd.prototypes.text_evidence import WEIGHT, Texts, confident_share
from ttgcd.prototypes.trust import Agreement, agreement

#: Share of what the words say in the features, where they are trusted.
TEXT_SHARE = 0.05
#: By how much a start must be worth more than the first one, which alone begins at the names.
LEAD = 0.06
#: Rows on which fresh starts are tried: at least so many, and so many a category.
SAMPLE, SAMPLE_OF_EACH = 4096, 20
#: The same of many categories, and for the measure of trust.
SAMPLE_OF_MANY, TRUST_OF_MANY = 8, 4
_SEEDS, _TRUST, _BIRTHS, _SAMPLE = range(4)  # purposes of random numbers


@dataclass(frozen=True)
class Trust:
    """What the texts may decide: ``weight`` of the bonus, ``share`` in the features. Without names
    there is nothing that they could be tested by, and their reliability is None."""

    weight: float
    share: float
    reliability: float | None


@dataclass(frozen=True)
class Fitted:
    """The model, the labels (columns of it) of the reservoir's rows, and what led to them."""

    model: LinearModel
    labels: np.ndarray
    trust: Trust
    words: np.ndarray  # places of the words of each novel category


@dataclass(frozen=True)
class Restarts:
    """How often clustering begins anew, at first and later."""

    first: int
    later: int


def fit(
    rows: np.ndarray,
    texts: Texts,
    novel: int,
    seed: tuple[int, ...],
    restarts: Restarts,
    before: np.ndarray | None = None,
    old_novel: int = 0,
    trust: Trust | None = None,
    margin: float = 0.0,
    named: int = 0,
) -> Fitted:
    """A model with ``novel`` categories beside the known ones.

    ``before`` are labels of the rows under the model before, which had ``old_novel`` categories:
    the fit goes on from them. ``trust`` is kept from an earlier fit, or measured when it is None;
    then fresh starts compete with the model that goes on, and must be worth more by ``margin``.
    The last ``named`` of the known classes have been found by their looks before they got a name:
    a fresh start begins them at their members.
    """
    n_known, count = len(texts.anchors), len(texts.anchors) + novel
    geometry, names = Geometry.of(rows), Standard.of(rows, texts.anchors)
    some = _sample(len(rows), count, seed)
    said = texts.read(rows).mean(axis=0) if len(texts.words) else np.zeros(0, np.float32)
    fresh = trust is None
    if trust is None:
        trust = _measure(rows[some], Space(geometry, texts, said, 0.0), novel, seed)
    space = Space(geometry, texts, said, trust.share)
    mapped, words = space(rows), Standard.of(rows, texts.words)
    listener = Listener.of(rows, mapped, names, words, novel, WEIGHT * trust.weight)
    found: Spoken | None = None
    if before is not None:
        old = centres_of(mapped, before, n_known + old_novel)
        rng = np.random.default_rng((*seed, _BIRTHS))
        found = listener.cluster(resized(mapped, old, novel, listener.added, n_known, rng))
    if found is None or fresh:
        member = None
        if named and before is not None:
            mine = before[some]
            member = np.where((mine >= n_known - named) & (mine < n_known), mine, -1)
        added = listener.added.at(some)
        sample = Sample.of(rows[some], mapped[some], added, listener.weight, texts, member)
        times = restarts.first if found is None else restarts.later
        rng = np.random.default_rng((*seed, _SEEDS))
        judge = Judge(geometry(rows[some]), some, sample.known, sample.sure)
        trusted = listener.speaking and trust.share >= TEXT_SHARE
        new = judge.best(starts(sample, texts, times, trusted, rng), listener)
        if found is None or judge.worth(new) > (1 + margin) * judge.worth(found):
            found = new
    model = LinearModel(space, found.partition.centres, found.bonus)
    return Fitted(model, found.partition.labels, trust, found.chosen)


@dataclass(frozen=True)
class Judge:
    """Which of several partitions is best: how well it parts the sample (``some`` of the rows) in
    the ``plain`` space, and how far texts bear it out: the names by the samples that are ``sure``
    to be of a ``known`` class, words by the novel ones."""

    plain: np.ndarray
    some: np.ndarray
    known: np.ndarray
    sure: np.ndarray

    def worth(self, found: Spoken, labels: np.ndarray | None = None) -> float:
        """``labels`` of the sample where they are not those of ``found``."""
        last = found.partition.labels[self.some]
        named = float((last == self.known)[self.sure].mean()) if self.sure.any() else 1.0
        parted = silhouette(self.plain, last if labels is None else labels)
        return parted * float(np.sqrt(found.borne_out * named))

    def best(self, tried: Iterator[np.ndarray], listener: Listener) -> Spoken:
        """What becomes of the best start. Starts were found in spaces in which neighbours are heard
        and are judged in the plain one, which they had no chance to fit."""
        count = listener.added.count
        best: Spoken | None = None
        most = 0.0
        for labels in tried:
            found = listener.cluster(centres_of(listener.mapped[self.some], labels, count))
            worth = self.worth(found, labels)
            if best is None:
                lead = LEAD if listener.n_known else 0.0
                best, most = found, worth + lead * abs(worth)
            elif worth > most:
                best, most = found, worth
        assert best is not None
        return best


def resized(
    mapped: np.ndarray,
    centres: np.ndarray,
    novel: int,
    bonus: RowBonus,
    n_known: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """The centres with as many novel ones as wanted.

    New ones begin where the rows are explained worst. Those go whose members lose least by moving
    to their second best centre.
    """
    known_bonus = bonus.first(n_known)
    lacking = n_known + novel - len(centres)
    if is_many(len(centres) + abs(lacking)):
        return _many_resized(mapped, centres, lacking, known_bonus, rng)
    scores = mapped @ centres.T
    scores[:, :n_known] += known_bonus
    if lacking > 0:
        seeds = spread_seeds(mapped, scores.max(axis=1), lacking, rng)
        return np.concatenate([centres, smooth(mapped)[seeds]])
    alive = np.ones(len(centres), bool)
    for _ in range(-lacking):
        best = scores.argmax(axis=1)
        two = np.partition(scores, -2, axis=1)[:, -2:]
        loss = np.bincount(best, weights=two[:, 1] - two[:, 0], minlength=len(centres))
        loss[:n_known] = np.inf
        loss[~alive] = np.inf
        gone = int(loss.argmin())
        alive[gone] = False
        scores[:, gone] = -np.inf
    return centres[alive]


def _many_resized(
    mapped: np.ndarray,
    centres: np.ndarray,
    lacking: int,
    known_bonus: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The same of many categories: in blocks, and those that go are found at once."""
    if not lacking:
        return centres
    n_known = known_bonus.shape[1]
    best = np.empty((len(mapped), 3), np.float32)  # the best centre and the two best scores
    for part in blocks(len(mapped), len(centres)):
        scores = mapped[part] @ centres.T
        scores[:, :n_known] += known_bonus[part]
        best[part, 0] = scores.argmax(axis=1)
        best[part, 1:] = np.partition(scores, -2, axis=1)[:, -2:]
    if lacking > 0:
        seeds = spread_seeds(mapped, best[:, 2], lacking, rng)
        return np.concatenate([centres, smooth(mapped, of=seeds)])
    loss = np.bincount(best[:, 0].astype(int), best[:, 2] - best[:, 1], len(centres))
    loss[:n_known] = np.inf
    return np.delete(centres, np.argsort(loss, kind="stable")[:-lacking], axis=0)


def _measure(rows: np.ndarray, space: Space, novel: int, seed: tuple[int, ...]) -> Trust:
    """Trust in the texts, from clusters without them; where the words may have a share, the weight
    of the names is measured with it."""
    texts = space.texts
    if not len(texts.anchors):
        return Trust(0.0, 0.0, None)
    share = confident_share(len(texts.anchors) / (len(texts.anchors) + novel))
    seed = (*seed, _TRUST)
    if is_many(count := len(texts.anchors) + novel):
        rows = rows[: TRUST_OF_MANY * count]
    found: Agreement = agreement(rows, space(rows), texts, share, novel, seed)
    reliability = found.reliability
    if not len(texts.words):
        return Trust(found.weight, 0.0, reliability)
    # Words that mean nothing do more harm in the features than in the bonus.
    said = TEXT_SHARE * min(1.0, (2 * reliability) ** 2)
    if said == TEXT_SHARE:
        full = Space(space.geometry, texts, space.mean, said)
        found = agreement(rows, full(rows), texts, share, novel, seed)
    return Trust(found.weight, said, reliability)


def _sample(available: int, count: int, seed: tuple[int, ...]) -> np.ndarray:
    """Places of the rows on which fresh starts are tried."""
    wanted = max(SAMPLE, SAMPLE_OF_EACH * min(count, MANY), SAMPLE_OF_MANY * count)
    if available <= wanted:
        return np.arange(available)
    rng = np.random.default_rng((*seed, _SAMPLE))
    return np.sort(rng.choice(available, wanted, replace=False))
