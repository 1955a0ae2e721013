"""How likely an answer is right: a calibrated probability from what text and neighbours say.

An answer is right when it names the sample's known class, or says "novel" for a sample of no known
class. The signs of it are measured in units of the stream itself, so that one set of weights
serves other encoders and shifts; a method that errs in its own way has its own weights. They ship
in ``data/confidence.json`` and were fitted on six development streams (``benchmarks/confidence.py
--fit``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ttgcd.data import path
from ttgcd.prototypes.bank import normalise

#: The signs of a right answer, for known classes and for novel categories. "text" is the cosine to
#: an anchor, standardised for each anchor over the stream.
KNOWN_SIGNS = (
    "own text minus best text",
    "best text minus second",
    "own text",
    "gap to the nearest other category",
    "share of the category with this text label, as log odds",
    "own text, mean over the category",
    "nearness to the category",
)
NOVEL_SIGNS = (
    "best text",
    "best text minus second",
    "gap to the nearest known category",
    "share of the category with one text label, as log odds",
    "best text, mean over the category",
    "nearness to the category",
)
#: Samples from which the facts about a stream are taken.
MOST_SAMPLES = 8_192


@dataclass(frozen=True)
class Logistic:
    """p = 1 / (1 + exp(-(weights . (signs - mean) / scale + bias)))."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    bias: float

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        logits = ((signs - self.mean) / self.scale) @ self.weights + self.bias
        return 1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))

    @classmethod
    def from_json(cls, record: Mapping[str, object]) -> Logistic:
        arrays = {key: np.array(record[key], np.float64) for key in ("mean", "scale", "weights")}
        return cls(**arrays, bias=float(record["bias"]))  # type: ignore[arg-type]


#: Of methods without weights of their own.
OTHERS = "others"


def shipped(method: str = OTHERS) -> tuple[Logistic, Logistic]:
    """The calibration of a method's known and of its novel answers."""
    records = json.loads(path("confidence.json").read_text(encoding="utf-8"))
    record = records.get(method, records[OTHERS])
    return Logistic.from_json(record["known"]), Logistic.from_json(record["novel"])


class Rows(Protocol):
    """Unit features that can be asked for in pieces: an array, or a file of them."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any: ...


class StreamFacts:
    """What a finished stream looks like, from (a sample of) its features and final answers.

    Parameters
    ----------
    features, categories: unit rows and answers of the sample.
    anchors: unit text embeddings of the known classes.
    """

    def __init__(self, features: np.ndarray, categories: np.ndarray, anchors: np.ndarray) -> None:
        rows = features.astype(np.float32)
        self.anchors = anchors.astype(np.float32)
        text = rows @ self.anchors.T
        self.text_mean, self.text_scale = text.mean(axis=0), text.std(axis=0) + 1e-6
        self.ids, at = np.unique(categories, return_inverse=True)
        at = at.ravel()
        self.sizes = np.bincount(at)
        self.sums = np.zeros((len(self.ids), rows.shape[1]))
        np.add.at(self.sums, at, rows.astype(np.float64))
        self._directions = normalise(self.sums).astype(np.float32)
        self._lengths = np.linalg.norm(self.sums, axis=1)
        text = (text - self.text_mean) / self.text_scale
        labels = text.argmax(axis=1)
        told = np.zeros((len(self.ids), len(anchors)))
        np.add.at(told, (at, labels), 1.0)
        known = self.ids < len(anchors)
        mine = told[np.arange(len(self.ids)), np.where(known, self.ids, 0)]
        self.share = np.where(known, mine, told.max(axis=1)) / self.sizes
        own = text[np.arange(len(rows)), np.where(categories < len(anchors), categories, labels)]
        self.text_of = np.bincount(at, own) / self.sizes
        near, gap = self._near(rows, at, inside=True)
        self.near_mean, self.near_scale = float(near.mean()), float(near.std()) + 1e-6
        self.gap_scale = float(np.abs(gap).mean()) + 1e-6

    def _near(
        self, rows: np.ndarray, at: np.ndarray, inside: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cosine to the own category without the sample itself, and how much nearer that is than
        the nearest other one (for novel answers: the nearest known one)."""
        n_known, every = len(self.anchors), np.arange(len(rows))
        dots = rows @ self._directions.T  # cosines to all categories, the own one put aside
        own = dots[every, at].astype(np.float64) * self._lengths[at]
        dots[every, at] = -1.0
        novel = self.ids[at] >= n_known
        nearest = dots.max(axis=1, initial=-1.0)
        if novel.any():
            nearest[novel] = dots[novel][:, self.ids < n_known].max(axis=1, initial=-1.0)
        if not inside:
            near = own / np.maximum(self._lengths[at], 1e-12)
            return near, near - nearest
        # v . (S - v) / |S - v|, from v . S, |S| and |v| alone.
        square = np.einsum("nd,nd->n", rows, rows).astype(np.float64)
        rest = np.maximum(self._lengths[at] ** 2 - 2 * own + square, 0.0)
        alone = rest < 1e-6 * np.maximum(square, 1e-12)
        near = np.where(alone, 0.0, (own - square) / np.sqrt(np.where(alone, 1.0, rest)))
        return near, near - nearest

    def signs(
        self, features: np.ndarray, categories: np.ndarray, inside: bool = True
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether each answer is a known class, and the signs as if all were known or novel;
        ``inside`` when the rows are of the stream itself and not further ones."""
        rows, n_known = features.astype(np.float32), len(self.anchors)
        text = (rows @ self.anchors.T - self.text_mean) / self.text_scale
        first = text.argmax(axis=1)
        every = np.arange(len(rows))
        best, second = text[every, first], np.zeros(len(rows), np.float32)
        at = np.searchsorted(self.ids, categories)
        at = np.minimum(at, len(self.ids) - 1)  # a category that the sample missed: any will do
        known = categories < n_known
        own = text[every, np.where(known, categories, 0)]
        if n_known > 1:
            text[every, first] = -np.inf
            second = text.max(axis=1)
        near, gap = self._near(rows, at, inside)
        near = (near - self.near_mean) / self.near_scale
        gap = gap / self.gap_scale
        odds = np.log((self.share[at] + 0.02) / (1.02 - self.share[at]))
        mean = self.text_of[at]
        as_known = np.stack([own - best, best - second, own, gap, odds, mean, near], axis=1)
        as_novel = np.stack([best, best - second, gap, odds, mean, near], axis=1)
        return known, as_known, as_novel


class Confidence:
    """The probability that an answer is right, from the facts of one stream.

    ``calibration`` are the weights for known and novel answers, those ``shipped`` for methods at
    large when there are none. ``named`` are categories that a user gave a name on an earlier run,
    with the text embeddings of their names: they are known classes like those of the anchors.
    The answers are given by block; ``of_stream`` takes the facts from an even sample of all rows.
    """

    def __init__(
        self,
        features: np.ndarray,
        categories: np.ndarray,
        anchors: np.ndarray,
        calibration: tuple[Logistic, Logistic] | None = None,
        named: Mapping[int, np.ndarray] | None = None,
    ) -> None:
        self._named, self._n_known = dict(named or {}), len(anchors)
        self._calibration = calibration or shipped()
        texts = np.concatenate([anchors, *(text[None] for text in self._named.values())])
        self.facts = StreamFacts(features, self._columns(categories), texts)

    @classmethod
    def of_stream(
        cls,
        features: Rows,
        categories: np.ndarray,
        anchors: np.ndarray,
        calibration: tuple[Logistic, Logistic] | None = None,
        named: Mapping[int, np.ndarray] | None = None,
    ) -> Confidence:
        """``features`` may be on disk and of any length."""
        some = even_sample(len(features))
        return cls(np.asarray(features[some]), categories[some], anchors, calibration, named)

    def __call__(
        self, features: np.ndarray, categories: np.ndarray, inside: bool = True
    ) -> np.ndarray:
        for_known, for_novel = self._calibration
        given = self._columns(categories)
        known, as_known, as_novel = self.facts.signs(features, given, inside)
        return np.where(known, for_known(as_known), for_novel(as_novel)).astype(np.float32)

    def knows(self, categories: np.ndarray) -> np.ndarray:
        """Whether the facts are of these categories too: others are judged as any would be."""
        return np.isin(self._columns(categories), self.facts.ids)

    def _columns(self, categories: np.ndarray) -> np.ndarray:
        """Ids in which the named categories follow the known ones, and all others those."""
        if not self._named:
            return categories
        columns = np.where(categories < self._n_known, categories, categories + len(self._named))
        for place, category in enumerate(self._named, self._n_known):
            columns[categories == category] = place
        return columns


def even_sample(rows: int) -> np.ndarray:
    """Places of at most ``MOST_SAMPLES`` rows, spread evenly."""
    return np.linspace(0, rows - 1, min(rows, MOST_SAMPLES)).astype(np.int64)
