"""What a user of the names sees: no assignment, the predicted name is right or wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ttgcd.evaluation.accuracy import match
from ttgcd.evaluation.counts import Counts, CountsMetric, count, share


def named_known_accuracy_of(counts: Counts) -> float:
    table, known = counts.table, counts.n_known
    return share(np.trace(table[:known, :known]), table[:, :known].sum())


def named_known_accuracy(predicted: ArrayLike, true: ArrayLike, n_known: int) -> float:
    """Share of the samples of known classes that carry the right name (plain accuracy).

    >>> named_known_accuracy([0, 1, 1, 2], [0, 0, 1, 2], n_known=2)  # 2 of 3 known samples
    0.6666666666666666
    """
    return named_known_accuracy_of(count(predicted, true, n_known))


class NamedKnownAccuracyMetric(CountsMetric):
    """``named_known_accuracy`` over batches."""

    def compute(self) -> float:
        return named_known_accuracy_of(self.counts)


def known_matched_to_own_of(counts: Counts) -> float:
    own = np.arange(min(counts.n_known, len(counts.table)))
    present = counts.table[:, own].sum(axis=0) > 0
    # An empty pairing (no sample of the class under its own id) is no match by name.
    matched = (match(counts)[own] == own) & (counts.table[own, own] > 0)
    return share((matched & present).sum(), present.sum())


def known_matched_to_own(predicted: ArrayLike, true: ArrayLike, n_known: int) -> float:
    """Share of the known classes in the stream that the Hungarian assignment gives their own id.

    High split accuracy with a low share means that known classes were found again as unnamed
    groups: good clustering, useless names.
    """
    return known_matched_to_own_of(count(predicted, true, n_known))


class KnownMatchedToOwnMetric(CountsMetric):
    """``known_matched_to_own`` over batches."""

    def compute(self) -> float:
        return known_matched_to_own_of(self.counts)
