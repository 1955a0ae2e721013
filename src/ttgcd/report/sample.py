"""A seeded uniform sample of a stream, for the map: bounded, and the same however it is batched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_LAST = np.uint64(2**64 - 1)


def priorities(index: np.ndarray, seed: int) -> np.ndarray:
    """A pseudo-random uint64 for every stream index (the SplitMix64 finaliser)."""

    def mix(z: np.ndarray) -> np.ndarray:
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    base = mix(np.array([seed % 2**64], np.uint64))
    return mix(np.asarray(index, np.int64).astype(np.uint64) ^ base)


class Sample:
    """The ``size`` samples of smallest priority among those seen.

    The priority depends on the seed and the index alone. Hence the sample does not depend on
    batch boundaries, a sample that left never comes back, and seeing one twice changes nothing.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.seed = seed
        self.priority = np.full(size, _LAST)
        self.index = np.full(size, -1, np.int64)
        self.position = np.full(size, -1, np.int64)
        self.category = np.full(size, -1, np.int64)
        self.ids = [""] * size
        self.featured = np.zeros(size, bool)
        self.features: np.ndarray | None = None
        self._slots: dict[int, int] = {}  # of the indexes that are kept

    def offer(self, index: np.ndarray, ids: Sequence[str], positions: Sequence[int]) -> None:
        """Samples that arrived, not answered yet."""
        if len(self.index) == 0:
            return
        priority = priorities(index, self.seed)
        likely = np.flatnonzero(priority < self.priority.max())
        for row in likely.tolist():
            if (at := int(index[row])) in self._slots:
                continue
            slot = int(self.priority.argmax())
            if priority[row] >= self.priority[slot]:
                continue
            self._slots.pop(int(self.index[slot]), None)
            self._slots[at] = slot
            self.priority[slot], self.index[slot] = priority[row], at
            self.ids[slot], self.position[slot] = ids[row], positions[row]
            self.category[slot], self.featured[slot] = -1, False

    def answer(self, index: np.ndarray, category: np.ndarray, features: np.ndarray | None) -> None:
        """What was said about samples; a later answer replaces an earlier one."""
        if len(self.index) == 0:
            return
        # Late in a stream few samples can be among the kept ones: those of small priority.
        likely = np.flatnonzero(priorities(index, self.seed) <= self.priority.max())
        found = {
            self._slots[at]: row
            for row, at in zip(likely.tolist(), index[likely].tolist())
            if at in self._slots
        }
        if not found:
            return
        slots, rows = (np.array(part, np.int64) for part in zip(*found.items()))
        self.category[slots] = category[rows]
        if features is None:
            return
        if self.features is None:
            # Half precision: a map needs no more, and the state is saved with every checkpoint.
            self.features = np.zeros((len(self.index), features.shape[1]), np.float16)
        self.features[slots] = features[rows]
        self.featured[slots] = True

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {
            "index": self.index.copy(),
            "position": self.position.copy(),
            "category": self.category.copy(),
            "featured": self.featured.copy(),
        }
        if self.features is not None:
            arrays["features"] = self.features.copy()
        return arrays, {"ids": list(self.ids)}

    def load(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        for name in ("index", "position", "category", "featured"):
            setattr(self, name, np.array(arrays[name]))
        self.features = np.array(arrays["features"]) if "features" in arrays else None
        self.ids = list(values["ids"])
        used = self.index >= 0
        self._slots = {int(self.index[slot]): slot for slot in np.flatnonzero(used).tolist()}
        self.priority = np.where(used, priorities(self.index, self.seed), _LAST)
