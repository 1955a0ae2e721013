"""Clustering accuracy from one unconstrained Hungarian assignment over the full stream.

This is the protocol of the paper (Sec. 5.1) and "v2" of the GCD literature: one assignment of
predicted ids to true classes is found for all samples together and then read on the known part,
the novel part and the whole. A novel group may be matched to a known class and the other way
round; the names are not used. For accuracy by name see ``ttgcd.evaluation.named``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ttgcd.evaluation.counts import Counts, CountsMetric, as_ids, count, share


class SplitAccuracy(NamedTuple):
    """Fractions in 0..1; NaN where there is no sample to score."""

    all: float
    known: float
    novel: float


def match(counts: Counts) -> np.ndarray:
    """For each true id the predicted id it is matched to (maximal number of agreeing samples).

    The table is square over every id that occurs on either side, so fewer groups than classes
    leave classes unmatched (they are paired with an empty row) and surplus groups go unused.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import: not before it is needed

    table = counts.table
    if table.size == 0:
        return np.zeros(0, dtype=np.int64)
    rows, columns = linear_sum_assignment(table.max() - table)
    matched = np.empty(len(table), dtype=np.int64)
    matched[columns] = rows
    return matched


def split_accuracy_of(counts: Counts) -> SplitAccuracy:
    table, known = counts.table, counts.n_known
    agreeing = table[match(counts), np.arange(len(table))]
    totals = table.sum(axis=0)
    return SplitAccuracy(
        all=share(agreeing.sum(), totals.sum()),
        known=share(agreeing[:known].sum(), totals[:known].sum()),
        novel=share(agreeing[known:].sum(), totals[known:].sum()),
    )


def split_accuracy(predicted: ArrayLike, true: ArrayLike, n_known: int) -> SplitAccuracy:
    """All / Known / Novel of one stream.

    Args:
        predicted: category id of every sample (known k is k, novel l is ``n_known + l``).
        true: true class id of every sample, in the same layout.
        n_known: number of known classes K.

    >>> split_accuracy([0, 0, 2, 2], [0, 0, 1, 1], n_known=1)  # group 2 is matched to class 1
    SplitAccuracy(all=1.0, known=1.0, novel=1.0)
    >>> split_accuracy([0, 1], [0, 1], n_known=2).novel        # no novel sample
    nan
    """
    return split_accuracy_of(count(predicted, true, n_known))


class SplitAccuracyMetric(CountsMetric):
    """``split_accuracy`` over batches."""

    def compute(self) -> SplitAccuracy:
        return split_accuracy_of(self.counts)


def accuracy_by_part(
    predicted: ArrayLike, true: ArrayLike, n_known: int, parts: int = 10
) -> list[SplitAccuracy]:
    """Accuracy in successive parts of the stream, under the one full-stream assignment."""
    predicted, true = as_ids(predicted, "predicted"), as_ids(true, "true")
    matched = match(count(predicted, true, n_known))
    correct, known = predicted == matched[true], true < n_known
    return [
        SplitAccuracy(
            all=share(right.sum(), len(right)),
            known=share((right & is_known).sum(), is_known.sum()),
            novel=share((right & ~is_known).sum(), (~is_known).sum()),
        )
        for right, is_known in zip(
            np.array_split(correct, parts), np.array_split(known, parts), strict=True
        )
    ]
