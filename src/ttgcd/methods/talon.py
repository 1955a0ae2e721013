"""TALON-style: threshold prototypes with a moving average, without its encoder training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ttgcd.methods.growing import Growing
from ttgcd.prototypes.bank import normalise


@dataclass(kw_only=True)
class Talon(Growing):
    """A prototype moves by rate * mean cosine * n / (n + smooth) towards the mean of the n samples
    that a batch gave it, when there are two or more."""

    name: ClassVar[str] = "talon"

    novel_rate: float = 0.3
    novel_smooth: float = 8.0
    known_rate: float = 0.06
    known_smooth: float = 32.0

    def place(self, feature: np.ndarray) -> int | None:
        return self.open(feature) if self.room() else None

    def update(self, features: np.ndarray, categories: np.ndarray) -> None:
        centres = self.centres.astype(np.float64)
        for category in np.unique(categories):
            mine = features[categories == category].astype(np.float64)
            if len(mine) < 2 or not centres[category].any():
                continue
            novel = category >= self.task.n_known
            rate = self.novel_rate if novel else self.known_rate
            smooth = self.novel_smooth if novel else self.known_smooth
            confidence = float(np.clip((mine @ centres[category]).mean(), 0.0, 1.0))
            alpha = rate * confidence * len(mine) / (len(mine) + smooth)
            centres[category] = (1.0 - alpha) * centres[category] + alpha * mine.mean(axis=0)
        self.centres = normalise(centres).astype(np.float32)
