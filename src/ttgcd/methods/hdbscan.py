"""HDBSCAN on frozen features: density clusters, their number free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.offline import Offline
from ttgcd.prototypes.clusters import name_clusters, nearest


@dataclass(kw_only=True)
class Hdbscan(Offline):
    """The number of clusters is found, not given: ids may go beyond K + L - 1.

    Clusters are named as for k-means. Noise goes to the nearest cluster centre; without any
    cluster everything is one. Density needs all pairs, so at most ``fit_samples`` samples, drawn
    at random, are clustered and the others join the nearest centre.
    """

    name: ClassVar[str] = "hdbscan"
    needs_names: ClassVar[bool] = False

    min_cluster_size: int = 10
    min_samples: int | None = None
    fit_samples: int = 10_000

    def __post_init__(self) -> None:
        if self.min_cluster_size < 2:
            raise InputError(f"min_cluster_size must be 2 or more, got {self.min_cluster_size}")
        if self.fit_samples < 2:
            raise InputError(f"fit_samples must be 2 or more, got {self.fit_samples}")

    @property
    def wants_count(self) -> bool:
        return False  # density finds the number

    def cluster(self, features: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        task = self.task
        rows = np.arange(len(features))
        if len(rows) > self.fit_samples:
            rng = np.random.default_rng([task.seed, 0xDE5])
            rows = np.sort(rng.choice(len(rows), self.fit_samples, replace=False))
        labels = self._density(features[rows])
        count = int(labels.max(initial=-1)) + 1
        if count == 0:
            labels, count = np.zeros(len(rows), np.int64), 1
        found = np.stack([features[rows][labels == c].mean(axis=0) for c in range(count)])
        everywhere = nearest(features, found)
        everywhere[rows[labels >= 0]] = labels[labels >= 0]
        ids = name_clusters(found, task.anchors, task.n_known)
        centres = np.zeros(
            (max(task.n_known + self.n_novel, int(ids.max()) + 1), features.shape[1]), np.float32
        )
        centres[ids] = found
        return ids[everywhere], centres

    def _density(self, features: np.ndarray) -> np.ndarray:
        """Cluster of every sample, -1 for noise."""
        from sklearn.cluster import HDBSCAN

        # min_samples defaults to min_cluster_size and must not exceed the number of samples.
        if len(features) < max(self.min_cluster_size, self.min_samples or 0):
            return np.full(len(features), -1)
        fitted = HDBSCAN(
            min_cluster_size=self.min_cluster_size, min_samples=self.min_samples, copy=True
        )
        return fitted.fit(features.astype(np.float64)).labels_
