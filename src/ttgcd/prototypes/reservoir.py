"""A uniform sample of everything seen so far, of bounded size."""

from __future__ import annotations

import numpy as np


class Reservoir:
    """The ``capacity`` samples of lowest priority, a priority being a hash of (seed, index).

    Every sample of the stream is kept with the same probability. Unlike reservoir sampling with a
    random generator the outcome depends on neither the batches in which the samples came nor an
    interruption: nothing but the kept rows has to be stored.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        if capacity < 1:
            raise ValueError(f"a reservoir of {capacity} rows")
        self.capacity, self.seed, self.seen = capacity, seed, 0
        self.rows = np.zeros((0, 0), np.float32)
        self.index = np.zeros(0, np.int64)  # place of every row in the stream, ascending

    def add(self, rows: np.ndarray) -> None:
        """Take in the next rows of the stream."""
        if len(rows) == 0:
            return
        index = np.arange(self.seen, self.seen + len(rows))
        self.seen += len(rows)
        if not len(self.index):
            self.rows = rows[:0]
        if len(self.index) >= self.capacity:
            # Most rows of a long stream are not kept: do not copy the reservoir for those.
            worst = priority(self.index, self.seed).max()
            wanted = priority(index, self.seed) < worst
            rows, index = rows[wanted], index[wanted]
            if not len(index):
                return
        self.rows = np.concatenate([self.rows, rows.astype(np.float32, copy=False)])
        self.index = np.concatenate([self.index, index])
        if len(self.index) > self.capacity:
            order = np.argsort(priority(self.index, self.seed), kind="stable")
            kept = np.sort(order[: self.capacity])
            self.rows, self.index = self.rows[kept], self.index[kept]


def priority(index: np.ndarray, seed: int) -> np.ndarray:
    """SplitMix64 of (seed, index): equidistributed 64-bit numbers without a carried state."""
    with np.errstate(over="ignore"):
        x = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = x + _mix(np.array([seed % 2**63], np.uint64) + np.uint64(0x632BE59BD9B4E019))
        return _mix(x)


def _mix(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
