"""What a run's own answers say about its names and its groups, measured once and kept in run.json.

Measured before doubtful answers are set aside and before any edit: it is the run that is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ttgcd.prototypes.standing_out import standing_out
from ttgcd.prototypes.structure import structure

#: Answers of a name that say something about it; with fewer it is left out.
ANSWERS_OF_A_NAME = 3


@dataclass(frozen=True)
class Signs:
    """Medians of the calibrated confidence, and how grouped the features are.

    Attributes
    ----------
    confidence, known_confidence
        Of all answers, and of those with a known class; None where there are none.
    known_share
        Share of the answers with a known class.
    names
        For each known class the median confidence of the answers with its name; None where there
        are fewer than ``ANSWERS_OF_A_NAME``.
    standing_out
        For each known class, how far images stand out to its name: see
        ``ttgcd.prototypes.standing_out``.
    structure
        See ``ttgcd.prototypes.structure``.
    """

    confidence: float | None = None
    known_confidence: float | None = None
    known_share: float = 0.0
    names: tuple[float | None, ...] = ()
    standing_out: tuple[float, ...] = ()
    structure: float | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Signs:
        lists = {key: tuple(record[key]) for key in ("names", "standing_out")}
        return cls(**{**record, **lists})


def read_signs(
    category: np.ndarray,
    confidence: np.ndarray | None,
    features: np.ndarray,
    anchors: np.ndarray,
) -> Signs:
    """The signs of a finished run; ``features`` may be an even sample of its rows. Without names
    there is nothing that an answer could be right about, and no confidence."""
    grouped = structure(features, len(np.unique(category)))
    n_known = len(anchors)
    if confidence is None or not n_known:
        return Signs(structure=grouped)
    judged = np.isfinite(confidence)
    category, confidence = category[judged], confidence[judged]
    known = category < n_known
    return Signs(
        _median(confidence),
        _median(confidence[known]),
        float(known.mean()) if len(known) else 0.0,
        names_confidence(category, confidence, n_known),
        tuple(np.round(standing_out(features, anchors), 4).tolist()),
        grouped,
    )


def names_confidence(
    category: np.ndarray, confidence: np.ndarray, n_known: int
) -> tuple[float | None, ...]:
    """How far each name is borne out by the answers that bear it: their median confidence.

    >>> names_confidence(np.array([0, 0, 0, 1, 2]), np.array([0.9, 0.8, 0.7, 0.6, 0.5]), 2)
    (0.8, None)
    """
    order = np.argsort(category, kind="stable")
    ends = np.searchsorted(category[order], np.arange(n_known + 1))
    mine = [confidence[order[begin:end]] for begin, end in pairwise(ends.tolist())]
    return tuple(_median(c) if len(c) >= ANSWERS_OF_A_NAME else None for c in mine)


def _median(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) else None
