"""Semi-supervised k-means (generalised category discovery) on confident text labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.offline import Offline
from ttgcd.prototypes.clusters import semi_supervised_kmeans
from ttgcd.prototypes.mixture import known_mask


@dataclass(kw_only=True)
class SemiSupervisedKMeans(Offline):
    """A sample counts as labelled when the mixture over the stream calls it known and its margin
    omega (Eq. 2) reaches ``confidence``; labelled samples stay in their class."""

    name: ClassVar[str] = "ss-kmeans"

    confidence: float = 0.5
    restarts: int = 10
    iterations: int = 10
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise InputError(f"confidence must lie in [0, 1], got {self.confidence}")
        if self.restarts < 1 or self.iterations < 1:
            raise InputError(
                "restarts and iterations must be 1 or more, got "
                f"{self.restarts} and {self.iterations}"
            )

    def cluster(self, features: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        task = self.task
        cosines = features @ task.anchors.T
        sure = known_mask(cosines.max(axis=1), task.seed) & (margins >= self.confidence)
        labels = np.where(sure, cosines.argmax(axis=1), -1)
        found = semi_supervised_kmeans(
            features,
            labels,
            task.n_known,
            task.n_known + self.n_novel,
            task.seed,
            self.restarts,
            self.iterations,
            self.tolerance,
        )
        return found.labels, np.where(np.isfinite(found.centres), found.centres, 0.0)
