"""Is a confidence a probability? Reliability table and expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ttgcd.errors import InputError


@dataclass(frozen=True)
class Bin:
    """Answers of about the same confidence."""

    confidence: float  # mean
    right: float  # share of right answers
    count: int


def reliability(confidence: ArrayLike, right: ArrayLike, bins: int = 15) -> list[Bin]:
    """Bins of equal width that hold an answer, doubtful ones first.

    >>> reliability([0.2, 0.25, 0.9], [0, 1, 1], bins=2)
    [Bin(confidence=0.225, right=0.5, count=2), Bin(confidence=0.9, right=1.0, count=1)]
    """
    p, truth = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    if p.shape != truth.shape or p.ndim != 1:
        raise InputError(f"confidence has shape {p.shape} and right {truth.shape}: one each")
    if len(p) and not (p.min() >= 0 and p.max() <= 1):
        raise InputError("a confidence lies between 0 and 1")
    place = np.minimum((p * bins).astype(int), bins - 1)
    return [
        Bin(float(p[own].mean()), float(truth[own].mean()), int(own.sum()))
        for own in (place == number for number in range(bins))
        if own.any()
    ]


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = 15) -> float:
    """Mean distance between confidence and share of right answers, weighted by the bins' sizes.

    >>> round(expected_calibration_error([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0]), 2)
    0.15
    """
    table = reliability(confidence, right, bins)
    total = sum(bin.count for bin in table)
    return sum(bin.count * abs(bin.confidence - bin.right) for bin in table) / max(total, 1)


def answers_right(predicted: ArrayLike, true: ArrayLike, n_known: int) -> np.ndarray:
    """What a confidence is about: the known class is the right one, or novel was said of a novel
    sample, whichever category it was put into."""
    given, truth = np.asarray(predicted), np.asarray(true)
    return np.where(given < n_known, given == truth, truth >= n_known)
