"""Zero-shot with a mixture threshold, k-means on the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ttgcd.methods.split import SplitThenCluster


@dataclass(kw_only=True)
class ZeroShotKMeans(SplitThenCluster):
    """What the five adapting methods do, without adapting anything."""

    name: ClassVar[str] = "zero-shot+kmeans"
