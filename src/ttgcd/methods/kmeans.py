"""k-means with K + L clusters on frozen features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ttgcd.methods.offline import Offline
from ttgcd.prototypes.clusters import kmeans, name_clusters


@dataclass(kw_only=True)
class KMeans(Offline):
    """Clusters first, names after: the K clusters that together fit the text anchors best take
    the known ids. Split accuracy does not depend on that."""

    name: ClassVar[str] = "kmeans"
    needs_names: ClassVar[bool] = False

    n_init: int = 10
    max_iter: int = 300

    def cluster(self, features: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        task = self.task
        total = task.n_known + self.n_novel
        found = kmeans(features, total, task.seed, self.n_init, self.max_iter)
        ids = name_clusters(found.centres, task.anchors, task.n_known)
        centres = np.zeros((total, features.shape[1]), np.float32)
        centres[ids] = found.centres
        return ids[found.labels], centres
