"""Fit the linear model to the reservoir: calibrate, trust, cluster, let the words speak.

A pure function of the reservoir, the texts, the number of novel categories and the model before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ttgcd.prototypes.calibration import Geometry, Standard
from ttgcd.prototypes.linear_model import LinearModel, Space
from ttgcd.prototypes.partition import (
    Partition,
    centres_of,
    from_seeds,
    group_sums,
    lloyd,
    smooth,
    spread_seeds,
)
from ttgcd.prototypes.text_evidence import (
    WEIGHT,
    Bonus,
    Texts,
    best_words,
    confident,
    known_bonus,
    word_bonus,
)
from ttgcd.prototypes.trust import Agreement, agreement
from ttgcd.prototypes.word_seeds import from_words

#: Share of what the words say in the features, where they are trusted.
TEXT_SHARE = 0.2
#: Rounds in which novel categories choose their words and are clustered again.
WORD_ROUNDS, WORD_STEPS = 3, 10
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
    then fresh starts compete with the model that goes on, and must beat it by ``margin``.
    The last ``named`` of the known classes have been found by their looks before they got a name:
    a fresh start begins them at their members.
    """
    n_known, count = len(texts.anchors), len(texts.anchors) + novel
    known_share = n_known / count
    geometry, names = Geometry.of(rows), Standard.of(rows, texts.anchors)
    says, keep = np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
    if n_known:
        logits = names(rows)
        says = logits.argmax(axis=1)
        sure = texts.confident_share(known_share)
        keep = confident(says, texts.gate(rows, logits), n_known, sure)
    if named and before is not None:
        member = (before >= n_known - named) & (before < n_known)
        keep = np.where(member, True, keep & (says < n_known - named))
        says = np.where(member, before, says)
    some = _sample(len(rows), count, seed)
    said = texts.read(rows).mean(axis=0) if len(texts.words) else np.zeros(0, np.float32)
    fresh = trust is None
    if trust is None:
        trust = _measure(rows[some], Space(geometry, texts, said, 0.0), novel, seed)
    space = Space(geometry, texts, said, trust.share)
    mapped, weight = space(rows), WEIGHT * trust.weight
    bonus = known_bonus(names, weight, novel)
    added = bonus(rows)
    speaking = bool(len(texts.words) and novel)
    words = Words(n_known, rows, mapped, bonus, Standard.of(rows, texts.words), weight)
    trusted = speaking and trust.share >= TEXT_SHARE
    spoken = cache(words.spoken)

    def better(new: Partition, old: Partition, by: float) -> bool:
        """Where words are trusted, partitions are compared after they have spoken."""
        if trusted:
            return spoken(new).worth > spoken(old).worth + by
        return new.value > old.value + by

    found: Partition | None = None
    if before is not None:
        old = centres_of(mapped, before, n_known + old_novel)
        rng = np.random.default_rng((*seed, _BIRTHS))
        start = resized(mapped, old, novel, added[:, :n_known], rng)
        found = lloyd(mapped, start, added, n_known, weight)
    if found is None or fresh:
        rng = np.random.default_rng((*seed, _SEEDS))
        times = restarts.first if found is None else restarts.later
        sample = mapped[some], says[some], keep[some], added[some]
        new = from_seeds(*sample, n_known, weight, times, rng)
        new = lloyd(mapped, new.centres, added, n_known, weight)
        if trusted:
            other = from_words(rows[some], sample[0], texts, *sample[1:], weight, rng)
            other = lloyd(mapped, other.centres, added, n_known, weight)
            new = other if better(other, new, 0.0) else new
        found = new if found is None or better(new, found, margin) else found
    if not speaking:
        none = np.zeros((novel, 0), np.int64)
        return Fitted(LinearModel(space, found.centres, bonus), found.labels, trust, none)
    last = spoken(found)
    model = LinearModel(space, last.partition.centres, last.bonus)
    return Fitted(model, last.partition.labels, trust, last.chosen)


@dataclass(frozen=True)
class Spoken:
    """A partition whose novel categories have chosen words (places), the bonus with theirs, and
    the share of the novel categories' samples of which the texts alone say the same."""

    partition: Partition
    bonus: Bonus
    chosen: np.ndarray
    borne_out: float

    @property
    def worth(self) -> float:
        """How well samples fit to their categories, and texts to both."""
        return self.partition.value + WEIGHT * self.borne_out


@dataclass(frozen=True)
class Words:
    """What words say about the reservoir; ``bonus`` is that of the known names."""

    n_known: int
    rows: np.ndarray
    mapped: np.ndarray
    bonus: Bonus
    words: Standard
    weight: float

    def spoken(self, found: Partition) -> Spoken:
        """Novel categories choose their words and are clustered again, in turns."""
        count = len(found.centres)
        for _ in range(WORD_ROUNDS):
            size = np.maximum(1, np.bincount(found.labels, minlength=count))[:, None]
            means = group_sums(self.rows, found.labels, count) / size
            chosen = best_words(self.words, means[self.n_known :])
            bonus = word_bonus(self.bonus, self.words, chosen, self.rows, self.weight)
            added = bonus(self.rows)
            found = lloyd(self.mapped, found.centres, added, self.n_known, self.weight, WORD_STEPS)
        novel = found.labels >= self.n_known
        same = added[novel].argmax(axis=1) == found.labels[novel]
        return Spoken(found, bonus, chosen, float(same.mean()) if novel.any() else 0.0)


def resized(
    mapped: np.ndarray,
    centres: np.ndarray,
    novel: int,
    known_bonus: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The centres with as many novel ones as wanted.

    New ones begin where the rows are explained worst. Those go whose members lose least by moving
    to their second best centre.
    """
    n_known = known_bonus.shape[1]
    scores = mapped @ centres.T
    scores[:, :n_known] += known_bonus
    lacking = n_known + novel - len(centres)
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


def _measure(rows: np.ndarray, space: Space, novel: int, seed: tuple[int, ...]) -> Trust:
    """Trust in the texts, from clusters without them; where the words may have a share, the weight
    of the names is measured with it."""
    texts = space.texts
    if not len(texts.anchors):
        return Trust(0.0, 0.0, None)
    share = texts.confident_share(len(texts.anchors) / (len(texts.anchors) + novel))
    seed = (*seed, _TRUST)
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
    """Rows on which restarts are tried: twenty a category, and 2,048 at least."""
    wanted = max(2048, 20 * count)
    if available <= wanted:
        return np.arange(available)
    rng = np.random.default_rng((*seed, _SAMPLE))
    return np.sort(rng.choice(available, wanted, replace=False))
