"""One linear score a category in a calibrated space: s_c(v) = f(v) . m_c + v . U_c + b_c."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.calibration import Geometry, unit
from ttgcd.prototypes.many import blocks
from ttgcd.prototypes.text_evidence import Bonus, Texts


@dataclass(frozen=True)
class Space:
    """f(v): the geometry and, with weight ``share``, the direction of what the words say."""

    geometry: Geometry
    texts: Texts
    mean: np.ndarray  # of what the words say over the reservoir
    share: float

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        mapped = self.geometry(rows)
        if self.share <= 0:
            return mapped
        said = unit(self.texts.read(rows) - self.mean)
        both = [(1 - self.share) ** 0.5 * mapped, self.share**0.5 * said]
        return np.concatenate(both, axis=1).astype(np.float32)


@dataclass(frozen=True)
class LinearModel:
    """The scores of all living categories; pure, so that any row can be answered again."""

    space: Space
    centres: np.ndarray
    bonus: Bonus

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        scores = self.space(rows) @ self.centres.T
        self.bonus.add_to(scores, rows)
        return scores

    def labels(self, rows: np.ndarray) -> np.ndarray:
        """The column of the highest score of every row."""
        out = np.empty(len(rows), np.int64)
        for part in blocks(len(rows), len(self.centres)):
            out[part] = self(rows[part]).argmax(axis=1)
        return out

    def reordered(self, columns: np.ndarray) -> LinearModel:
        """The same scores in another order of the categories."""
        bonus = Bonus(self.bonus.direction[columns], self.bonus.constant[columns])
        return LinearModel(self.space, self.centres[columns], bonus)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but the texts."""
        return {
            "mean": self.space.geometry.mean,
            "projection": self.space.geometry.projection,
            "said_mean": self.space.mean,
            "share": np.array(self.space.share, np.float64),
            "centres": self.centres,
            "direction": self.bonus.direction,
            "constant": self.bonus.constant,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], texts: Texts) -> LinearModel:
        geometry = Geometry(arrays["mean"], arrays["projection"])
        space = Space(geometry, texts, arrays["said_mean"], float(arrays["share"]))
        return cls(space, arrays["centres"], Bonus(arrays["direction"], arrays["constant"]))
