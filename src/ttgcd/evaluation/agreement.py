"""Agreement of two partitions, blind to ids: normalised mutual information, adjusted Rand index."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ttgcd.evaluation.counts import Counts, CountsMetric, count


def _entropy(sizes: np.ndarray) -> float:
    p = sizes / sizes.sum()
    some = p[p > 0]  # 0 log 0 = 0
    return float(-(some * np.log(some)).sum())


def nmi_of(counts: Counts) -> float:
    table = counts.table
    if not table.sum():
        return float("nan")
    by_predicted, by_true = _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))
    if by_predicted == 0.0 and by_true == 0.0:
        return 1.0  # one group, one class: they agree
    shared = by_predicted + by_true - _entropy(table.ravel())
    return max(0.0, shared) / ((by_predicted + by_true) / 2)


def nmi(predicted: ArrayLike, true: ArrayLike) -> float:
    """Mutual information over the arithmetic mean of the two entropies, 0..1.

    >>> nmi([1, 1, 0, 0], [0, 0, 1, 1])
    1.0
    """
    return nmi_of(count(predicted, true, 0))


class NmiMetric(CountsMetric):
    """``nmi`` over batches."""

    def compute(self) -> float:
        return nmi_of(self.counts)


def _pairs(sizes: np.ndarray) -> float:
    sizes = sizes.astype(np.float64)
    return float((sizes * (sizes - 1) / 2).sum())


def ari_of(counts: Counts) -> float:
    table = counts.table
    total = table.sum()
    if not total:
        return float("nan")
    together = _pairs(table)
    by_predicted, by_true = _pairs(table.sum(axis=1)), _pairs(table.sum(axis=0))
    expected = by_predicted * by_true / _pairs(np.array([total])) if total > 1 else 0.0
    highest = (by_predicted + by_true) / 2
    if highest == expected:
        return 1.0  # both all-in-one or both all-apart
    return (together - expected) / (highest - expected)


def ari(predicted: ArrayLike, true: ArrayLike) -> float:
    """Adjusted Rand index: 1 for identical partitions, about 0 for unrelated ones.

    >>> ari([1, 1, 0, 0], [0, 0, 1, 1])
    1.0
    """
    return ari_of(count(predicted, true, 0))


class AriMetric(CountsMetric):
    """``ari`` over batches."""

    def compute(self) -> float:
        return ari_of(self.counts)
