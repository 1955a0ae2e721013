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
        self._rows = np.zeros((0, 0), np.float32)
        self._index = np.zeros(0, np.int64)
        self._worst: np.uint64 | None = None  # priority of the last row kept, once it is full
        # Rows that came since: taking in a batch must not cost a copy of the reservoir.
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._count = 0

    @property
    def rows(self) -> np.ndarray:
        """The rows kept, in stream order."""
        self._settle()
        return self._rows

    @property
    def index(self) -> np.ndarray:
        """Place of every row in the stream, ascending."""
        self._settle()
        return self._index

    def load(self, rows: np.ndarray, index: np.ndarray, seen: int) -> None:
        """Go on with what another reservoir kept."""
        self._rows, self._index, self.seen = rows, index, seen
        self._waiting, self._count, self._worst = [], 0, None
        self._settle()

    def grow(self, capacity: int) -> None:
        """Keep more from now on. What was let go is gone, so the latest rows have more than their
        share until the stream has grown as much as the capacity did."""
        if capacity > self.capacity:
            self._settle()
            self.capacity, self._worst = capacity, None

    def add(self, rows: np.ndarray) -> None:
        """Take in the next rows of the stream."""
        if len(rows) == 0:
            return
        index = np.arange(self.seen, self.seen + len(rows))
        self.seen += len(rows)
        if self._worst is not None:  # most rows of a long stream are not kept
            wanted = priority(index, self.seed) < self._worst
            if not wanted.any():
                return
            rows, index = rows[wanted], index[wanted]
        self._waiting.append((rows.astype(np.float32), index))
        self._count += len(index)
        if self._count > max(1024, self.capacity // 8):
            self._settle()

    def _settle(self) -> None:
        """Let go of what has too high a priority."""
        if self._waiting:
            held = [] if not len(self._index) else [self._rows]
            self._rows = np.concatenate([*held, *(rows for rows, _ in self._waiting)])
            self._index = np.concatenate([self._index, *(index for _, index in self._waiting)])
            self._waiting, self._count = [], 0
        if len(self._index) > self.capacity:
            order = np.argsort(priority(self._index, self.seed), kind="stable")
            kept = np.sort(order[: self.capacity])
            self._rows, self._index = self._rows[kept], self._index[kept]
        if len(self._index) == self.capacity:
            self._worst = priority(self._index, self.seed).max()


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
