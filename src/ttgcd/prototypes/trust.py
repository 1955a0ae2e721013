"""How far the names are to be trusted: as far as clusters made without them bear them out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ttgcd.prototypes.calibration import Standard
from ttgcd.prototypes.partition import Partition, from_seeds, smooth
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.text_evidence import Texts, confident

#: Agreement above chance at which the names are trusted fully.
FULL = 0.4
#: The cosine of a sample to its centre at which the weight of the texts was chosen.
USUAL_COSINE = 0.6
#: Names whose luck is known well enough, and how often they are turned at most.
DOZEN, MOST_TURNS = 12, 4
_TURN = 7  # seed of the fixed rotation


@dataclass(frozen=True)
class Agreement:
    """``share``: samples in known clusters that the names put there too; ``chance``: the same with
    meaningless names; ``cosine``: mean cosine of a sample to its centre."""

    share: float
    chance: float
    cosine: float

    @property
    def reliability(self) -> float:
        """0: the names do no better than meaningless ones; 1: they are fully borne out."""
        return reliability(self.share, self.chance, FULL)

    @property
    def weight(self) -> float:
        """Reliability in units of the cosines of this stream."""
        return self.reliability * self.cosine / USUAL_COSINE


def reliability(share: float, chance: float, full: float) -> float:
    """Agreement above chance, of what chance leaves, in units of what is believed fully."""
    chance = min(float(chance), 0.95)
    return float(np.clip((share - chance) / (full * (1 - chance)), 0, 1))


def turned(texts: Texts, times: int = 1) -> Texts:
    """The same anchors after a fixed random rotation, so many times: they keep their mutual angles
    and lose their meaning."""
    anchors, rotation = texts.anchors, _rotation(texts.anchors.shape[1])
    for _ in range(times):
        anchors = anchors @ rotation
    return Texts(anchors, texts.words, texts.scale)


def agreement(
    rows: np.ndarray,
    mapped: np.ndarray,
    texts: Texts,
    share: float,
    novel: int,
    seed: tuple[int, ...],
) -> Agreement:
    """Cluster ``mapped`` (f of the rows) twice without any text bonus: once from the samples that
    the names are sure of, once from those that the same names are sure of after a fixed random
    rotation, which keeps their mutual angles and loses their meaning; few names are turned more
    often, as one may fit by luck.

    A sample is put into a class where that name fits best and its gate is among the highest, which
    is asked for the sake of few names: one alone has no other that could fit better."""
    smoothed = smooth(mapped)
    found = []
    turns = min(MOST_TURNS, -(-DOZEN // len(texts.anchors)))
    for turn, said in enumerate([texts, *(turned(texts, t + 1) for t in range(turns))]):
        anchors = said.anchors
        logits = Standard.of(rows, anchors)(rows)
        says, gate = logits.argmax(axis=1), said.gate(rows, logits)
        keep = confident(says, gate, len(anchors), share)
        ours = gate >= np.quantile(gate, novel / (len(anchors) + novel))
        rng = np.random.default_rng((*seed, turn))
        none = RowBonus.nothing(rows, len(anchors) + novel)
        clusters: Partition = from_seeds(
            mapped, says, keep, none, len(anchors), 0.0, 2, rng, smoothed
        )
        known = clusters.labels < len(anchors)
        same = ours & (says == clusters.labels)
        found.append((float(same[known].mean()) if known.any() else 0.0, clusters.value))
    chance = float(np.mean([share for share, _ in found[1:]]))
    return Agreement(found[0][0], chance, found[0][1])


@lru_cache(maxsize=2)
def _rotation(d: int) -> np.ndarray:
    """A fixed random rotation: decomposing it anew takes as long as a clustering."""
    rotation = np.linalg.qr(np.random.default_rng(_TURN).normal(size=(d, d)))[0]
    return rotation.astype(np.float32)
