"""Methods of a user's own, for the tests."""

from __future__ import annotations

from dataclasses import dataclass

from ttgcd.methods.kmeans import KMeans


@dataclass(kw_only=True)
class Broken(KMeans):
    """Fails at the first batch."""

    def observe(self, batch):
        raise RuntimeError("on purpose")
