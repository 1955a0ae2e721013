"""How often each predicted id met each true id: all that most of the metrics need."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ttgcd.errors import InputError

# The table of counts is dense; beyond this many ids it would not fit in memory.
MAX_IDS = 30_000


def as_ids(values: ArrayLike, argument: str) -> np.ndarray:
    """Category ids as a flat int64 array; refuses fractions, negatives and absurdly large ids."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise InputError(f"{argument}: expected one id per sample, got shape {given.shape}")
    if given.size == 0:
        return given.astype(np.int64)
    ids = given.astype(np.int64)
    if given.dtype == bool or not np.array_equal(ids, given):
        raise InputError(f"{argument}: ids must be whole numbers, got {given.dtype} values")
    if ids.min() < 0:
        raise InputError(f"{argument}: ids must not be negative, got {ids.min()}")
    if ids.max() >= MAX_IDS:
        raise InputError(
            f"{argument}: id {ids.max()} is too large (limit {MAX_IDS}); "
            "number the categories 0, 1, 2, ..."
        )
    return ids


class Counts:
    """The table ``counts[predicted, true]``, filled batch by batch.

    Ids follow the house layout: known class k is k, novel ones start at ``n_known``.
    """

    def __init__(self, n_known: int) -> None:
        if n_known < 0:
            raise InputError(f"n_known must not be negative, got {n_known}")
        self.n_known = int(n_known)
        self.table = np.zeros((0, 0), dtype=np.int64)

    def add(self, predicted: ArrayLike, true: ArrayLike) -> None:
        rows, columns = as_ids(predicted, "predicted"), as_ids(true, "true")
        if len(rows) != len(columns):
            raise InputError(
                f"predicted has {len(rows)} samples and true has {len(columns)}; they must agree"
            )
        if len(rows) == 0:
            return
        size = max(int(rows.max()), int(columns.max())) + 1
        if size > len(self.table):
            grown = np.zeros((size, size), dtype=np.int64)
            grown[: len(self.table), : len(self.table)] = self.table
            self.table = grown
        size = len(self.table)
        self.table += np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)

    def merge(self, other: Counts) -> None:
        """Add what another worker counted."""
        if other.n_known != self.n_known:
            raise InputError(
                f"cannot merge counts for {other.n_known} and {self.n_known} known classes"
            )
        if len(other.table) > len(self.table):
            self.table, small = other.table.copy(), self.table
        else:
            small = other.table
        self.table[: len(small), : len(small)] += small

    def reset(self) -> None:
        self.table = np.zeros((0, 0), dtype=np.int64)


def count(predicted: ArrayLike, true: ArrayLike, n_known: int) -> Counts:
    counts = Counts(n_known)
    counts.add(predicted, true)
    return counts


class CountsMetric:
    """A metric that is a function of the counts, as an accumulator: update, compute, reset."""

    def __init__(self, n_known: int) -> None:
        self.counts = Counts(n_known)

    def update(self, predicted: ArrayLike, true: ArrayLike) -> None:
        self.counts.add(predicted, true)

    def reset(self) -> None:
        self.counts.reset()


def share(part: float, whole: float) -> float:
    """part / whole, and NaN (never 0) when there is nothing to take a share of."""
    return float(part) / float(whole) if whole else float("nan")
