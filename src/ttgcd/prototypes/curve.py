"""How good each number of clusters is, and which numbers stand out: the hills of the curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: A hill is at least this high, of the way from the curve's lowest point to its highest.
HIGH = 0.75
#: On both sides the curve falls by this much of that way before it rises to higher ground.
FALL = 0.1
#: Hills nearer to each other than this ratio of clusters are one: the higher.
APART = 1.5


@dataclass(frozen=True)
class Curve:
    """``quality`` of cutting into so many ``clusters`` (ascending, known ones included)."""

    clusters: np.ndarray
    quality: np.ndarray

    def as_json(self) -> list[list[float]]:
        """Pairs of clusters and quality."""
        pairs = zip(self.clusters.tolist(), self.quality.tolist(), strict=True)
        return [[float(k), float(q)] for k, q in pairs]

    @classmethod
    def from_json(cls, pairs: Any) -> Curve:
        columns = np.array(pairs, np.float64).reshape(-1, 2).T
        return cls(columns[0], columns[1])


def landmarks(curve: Curve) -> list[int]:
    """Numbers of clusters at the hills of the curve, ascending; two or more are honest answers.

    The curve is smoothed by a running mean of three and scaled to 0..1. A hill has lower ground on
    both sides, so neither end of the curve is one; it reaches ``HIGH``, the curve falls by ``FALL``
    on either side before it is higher again, and no higher hill lies within a factor of ``APART``.
    """
    if len(curve.clusters) < 3:
        return []
    height = scaled(curve.quality)
    hills: list[int] = []
    for at in sorted(range(1, len(height) - 1), key=lambda i: (-height[i], i)):
        if height[at] < HIGH or _prominence(height, at) < FALL:
            continue
        k = curve.clusters[at]
        others = curve.clusters[hills]
        if all(max(k / other, other / k) >= APART for other in others):
            hills.append(at)
    return sorted(round(float(k)) for k in curve.clusters[hills])


def running_mean(quality: np.ndarray) -> np.ndarray:
    """The mean of every value and those beside it."""
    return np.convolve(np.pad(quality, 1, mode="edge"), np.full(3, 1 / 3), "valid")


def scaled(quality: np.ndarray) -> np.ndarray:
    """Smoothed by a running mean, from 0 to 1; a flat curve is 0 everywhere."""
    smooth = running_mean(quality)
    lowest, range_ = smooth.min(), np.ptp(smooth)
    return (smooth - lowest) / range_ if range_ > 1e-12 else np.zeros(len(smooth))


def _prominence(height: np.ndarray, at: int) -> float:
    """How far one must go down from here, at least, to get higher or to an end of the curve."""
    falls = []
    for side in (height[:at][::-1], height[at + 1 :]):
        higher = np.flatnonzero(side > height[at])
        reach = side[: higher[0]] if len(higher) else side
        falls.append(height[at] - reach.min(initial=height[at]))
    return float(min(falls))
