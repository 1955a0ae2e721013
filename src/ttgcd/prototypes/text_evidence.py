"""What the texts say about images: names of known classes, and words of a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ttgcd.prototypes.calibration import Standard, unit
from ttgcd.prototypes.many import blocks, is_many, is_whole

#: A word nearer to a known name than this says the same thing and is not used.
SAME_WORD = 0.8
#: Share of the samples nearest to a known name that are taken for its class.
CONFIDENT = 0.5
#: Weight of a standardised logit beside the cosine to a centre, where texts are trusted fully.
WEIGHT = 0.1
#: From this standardised logit on a text speaks *for* a category.
OFFSET = 1.5
#: Words that speak for a novel category.
BEST_WORDS = 3
#: From this mean standardised logit of a category's members on its name is believed: one standard
#: deviation above what the name says to all images.
SPEAKS = 1.0
CHUNK = 1024


@dataclass(frozen=True)
class Bonus:
    """Linear in the feature: v . direction + constant, one a category."""

    direction: np.ndarray  # (categories, d)
    constant: np.ndarray

    @classmethod
    def nothing(cls, categories: int, d: int) -> Bonus:
        return cls(np.zeros((categories, d), np.float32), np.zeros(categories, np.float32))

    @property
    def count(self) -> int:
        """Categories."""
        return len(self.direction)

    @cached_property
    def spoken(self) -> int:
        """The first categories, behind which no text speaks for any."""
        some = (self.direction != 0).any(axis=1) | (self.constant != 0)
        return int(np.flatnonzero(some).max(initial=-1)) + 1

    def first(self, columns: int) -> Bonus:
        """That of the first categories."""
        return Bonus(self.direction[:columns], self.constant[:columns])

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return rows @ self.direction.T + self.constant

    def add_to(self, scores: np.ndarray, rows: np.ndarray) -> None:
        """Add it to (rows x categories) in place; of many categories only where a text speaks."""
        if is_many(self.count):
            scores[:, : self.spoken] += self.first(self.spoken)(rows)
        else:
            scores += self(rows)


@dataclass(frozen=True)
class Texts:
    """Unit text features: ``anchors`` of the known names, ``words`` that are none of them."""

    anchors: np.ndarray
    words: np.ndarray
    scale: float

    @classmethod
    def of(cls, anchors: np.ndarray, words: np.ndarray | None, scale: float) -> Texts:
        anchors = unit(anchors)
        if words is None or len(words) == 0:
            return cls(anchors, anchors[:0], scale)
        return cls(anchors, unit(words)[distinct(anchors, words)], scale)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """t: what the texts say about an image, as one unit direction among them."""
        everything = np.concatenate([self.anchors, self.words])
        out = np.empty((len(rows), everything.shape[1]), np.float32)
        for start in range(0, len(rows), CHUNK):
            logits = self.scale * (rows[start : start + CHUNK] @ everything.T)
            np.exp(logits - logits.max(axis=1, keepdims=True), out=logits)
            out[start : start + CHUNK] = unit(logits @ everything)
        return out

    def gate(self, rows: np.ndarray, logits: np.ndarray) -> np.ndarray:
        """How sure it is that a sample is of a known class at all.

        With words: log sum exp of the known logits minus that of the words. Without: the best
        standardised logit.
        """
        if not len(self.words):
            return logits.max(axis=1)
        out = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), CHUNK):
            part = self.scale * rows[start : start + CHUNK]
            known, words = part @ self.anchors.T, part @ self.words.T
            out[start : start + CHUNK] = _log_sum_exp(known) - _log_sum_exp(words)
        return out


def confident_share(known_share: float) -> float:
    """Which share of a name's samples is taken for its class: where most samples are novel most of
    a name's samples are, too."""
    return min(CONFIDENT, known_share)


def distinct(anchors: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Mask of the words that are not another word for a known name."""
    return (unit(words) @ unit(anchors).T).max(axis=1, initial=-1.0) < SAME_WORD


def speaks(rows: np.ndarray, members: np.ndarray, text: np.ndarray) -> bool:
    """Whether a name speaks for the images that bear it: the mean standardised logit of the rows
    where ``members`` is ``SPEAKS`` or more. One that does not says nothing about others."""
    said = Standard.of(rows, unit(text[None]))(rows[members])
    return bool(len(said)) and float(said.mean()) >= SPEAKS


def confident(names: np.ndarray, gate: np.ndarray, n_known: int, share: float) -> np.ndarray:
    """Mask of the ``share`` of each name's samples that has the highest gate."""
    keep = np.zeros(len(names), bool)
    for k in range(n_known):
        mine = np.flatnonzero(names == k)
        best = mine[np.argsort(-gate[mine], kind="stable")]
        keep[best[: int(np.ceil(share * len(mine)))]] = True
    return keep


def known_bonus(names: Standard, weight: float, novel: int) -> Bonus:
    """weight (Z_k - OFFSET) for the known classes, nothing for the novel ones."""
    n_known, d = names.texts.shape
    direction = np.zeros((n_known + novel, d), np.float32)
    constant = np.zeros(n_known + novel, np.float32)
    direction[:n_known] = weight * names.texts / names.deviation[:, None]
    constant[:n_known] = -weight * (names.mean / names.deviation + OFFSET)
    return Bonus(direction, constant)


def best_words(words: Standard, centroids: np.ndarray) -> np.ndarray:
    """Places of the words with the highest mean standardised logit in each group."""
    return np.argsort(-words(centroids), axis=1, kind="stable")[:, :BEST_WORDS]


def word_bonus(
    known: Bonus,
    words: Standard,
    chosen: np.ndarray,
    rows: np.ndarray,
    weight: float,
) -> Bonus:
    """The known bonus, and for each novel category the same from its own words: their mean
    standardised logit, standardised again on ``rows``."""
    direction, constant = known.direction.copy(), known.constant.copy()
    first = len(direction) - len(chosen)
    mean = (words.texts[chosen] / words.deviation[chosen][..., None]).mean(axis=1)
    middle, deviation = _moments(rows, mean)
    deviation = deviation + 1e-6
    direction[first:] = weight * mean / deviation[:, None]
    constant[first:] = -weight * (middle / deviation + OFFSET)
    return Bonus(direction, constant)


def _moments(rows: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the products with each direction."""
    if is_whole(len(rows), len(directions)):
        said = rows @ directions.T
        return said.mean(axis=0), said.std(axis=0)
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32) @ directions.T
    square = np.zeros(len(directions))
    for part in blocks(len(rows), len(directions)):
        square += ((rows[part] @ directions.T - mean) ** 2).sum(axis=0, dtype=np.float64)
    return mean, np.sqrt(square / len(rows)).astype(np.float32)


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    top = logits.max(axis=1, keepdims=True)
    return (top + np.log(np.exp(logits - top).sum(axis=1, keepdims=True)))[:, 0]
