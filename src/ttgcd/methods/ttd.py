"""TTD-style: a memory of sign hashes beside the prototypes, without its test-time training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.growing import Growing
from ttgcd.prototypes.bank import normalise

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


@dataclass(kw_only=True)
class Ttd(Growing):
    """A sample far from every prototype looks into the memory: if most of the remembered samples
    with its hash belong to one novel category it joins that one, else it opens a category.

    The hash is the sign of the projection on the first principal directions of the known
    prototypes (random directions fill up where there are fewer). Each novel category remembers the
    hashes of its last ``memory`` samples. Novel prototypes move by ``novel_rate`` with every sample
    of theirs, known ones stay.
    """

    name: ClassVar[str] = "ttd"

    bits: int = 12
    memory: int = 20
    novel_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.bits <= 62:
            raise InputError(f"bits must lie in 1..62, got {self.bits}")
        if self.memory < 1:
            raise InputError(f"memory must be 1 or more, got {self.memory}")
        if not 0 <= self.novel_rate <= 1:
            raise InputError(f"novel_rate must lie in [0, 1], got {self.novel_rate}")

    def begin(self, buffer: list[Batch]) -> None:
        super().begin(buffer)
        known = self.centres[self.centres.any(axis=1)].astype(np.float64)
        dim = self.centres.shape[1]
        self._middle = known.mean(axis=0) if len(known) else np.zeros(dim)
        principal = np.linalg.svd(known - self._middle, full_matrices=False)[2][: len(known) - 1]
        rng = np.random.default_rng([self.task.seed, 0x7D])
        fill = rng.normal(size=(self.bits, dim))
        self._directions = np.concatenate([principal, fill])[: self.bits]
        self._hashes = np.zeros((0, 2), np.int64)  # (hash, category), oldest first

    def hash(self, feature: np.ndarray) -> int:
        signs = self._directions @ (feature - self._middle) > 0
        return int(signs @ (1 << np.arange(self.bits)))

    def place(self, feature: np.ndarray) -> int | None:
        remembered = self._hashes[self._hashes[:, 0] == self.hash(feature), 1]
        if len(remembered):
            names, counts = np.unique(remembered, return_counts=True)
            if 2 * counts.max() > len(remembered):
                return self._join(feature, int(names[counts.argmax()]))
        if self.room():
            return self._join(feature, self.open(feature))
        return None

    def _join(self, feature: np.ndarray, category: int) -> int:
        """Remember at once: the next sample of the same batch may be of the same kind."""
        entry = np.array([[self.hash(feature), category]])
        self._hashes = np.concatenate([self._hashes, entry])
        mine = np.flatnonzero(self._hashes[:, 1] == category)
        if len(mine) > self.memory:
            self._hashes = np.delete(self._hashes, mine[0], axis=0)
        return category

    def update(self, features: np.ndarray, categories: np.ndarray) -> None:
        centres = self.centres.astype(np.float64)
        for feature, category in zip(features, categories):
            if category >= self.task.n_known:
                moved = (1.0 - self.novel_rate) * centres[category] + self.novel_rate * feature
                centres[category] = normalise(moved)
        self.centres = centres.astype(np.float32)

    def learned_arrays(self) -> dict[str, np.ndarray]:
        return {
            **super().learned_arrays(),
            "middle": self._middle,
            "directions": self._directions,
            "hashes": self._hashes,
        }

    def load_learned(self, arrays: dict[str, np.ndarray]) -> None:
        super().load_learned(arrays)
        self._middle = arrays["middle"]
        self._directions = arrays["directions"]
        self._hashes = arrays["hashes"]
