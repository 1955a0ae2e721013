"""Has the stream changed since the model was calibrated?"""

from __future__ import annotations

import numpy as np

#: Samples of one block; the latest two blocks are what "recent" means.
BLOCK = 256
#: Recent samples must lie so many times farther from the calibration's mean than chance has it.
CHANGED = 8.0


class Recent:
    """Mean of the latest samples: two blocks of sums, so that memory and cost do not grow."""

    def __init__(self, dim: int) -> None:
        self.sums = np.zeros((2, dim), np.float64)  # the block before, the block that fills
        self.counts = np.zeros(2, np.int64)

    def add(self, rows: np.ndarray) -> None:
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            if self.counts[1] + len(part) > BLOCK:
                self.sums[0], self.counts[0] = self.sums[1], self.counts[1]
                self.sums[1], self.counts[1] = 0.0, 0
            self.sums[1] += part.sum(axis=0, dtype=np.float64)
            self.counts[1] += len(part)

    def shift(self, mean: np.ndarray, spread: float) -> float:
        """Squared distance of the recent mean from ``mean``, in units of what it would be by chance
        for samples of total variance ``spread``; near 1 while nothing changes."""
        count = int(self.counts.sum())
        if count < BLOCK or spread <= 0:
            return 0.0
        away = self.sums.sum(axis=0) / count - mean
        return float(away @ away) * count / spread
