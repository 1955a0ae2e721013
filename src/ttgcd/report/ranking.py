"""The few samples of every category that stand for it, without near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

#: Signatures that differ in at most this many of 64 bits belong to near-duplicates (cosine ~ 0.99).
_SAME_BITS = 3


@lru_cache(maxsize=4)
def _planes(width: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((width, 64)).astype(np.float32)


def signatures(features: np.ndarray, seed: int) -> np.ndarray:
    """64 signs of random projections of every row: close features share most bits."""
    signs = features.astype(np.float32) @ _planes(features.shape[1], seed) > 0
    return np.packbits(signs, axis=1).view(np.uint64).ravel()


def is_seed(score: np.ndarray) -> np.ndarray:
    """Whether a novel sample is what its prototype began as (Eq. 6-7): its cosine is 1, which is no
    sign of being typical. Scores that are no cosines may lie beyond 1 and say what they say.
    """
    return np.abs(score - 1.0) < 1e-4


class Ranking:
    """Per category the ``slots`` samples of largest key, best first; no two look alike."""

    def __init__(self, categories: int, slots: int) -> None:
        self.key = np.full((categories, slots), -np.inf, np.float32)
        self.index = np.full((categories, slots), -1, np.int64)
        self.position = np.full((categories, slots), -1, np.int64)
        self.signature = np.zeros((categories, slots), np.uint64)
        self.ids: dict[int, str] = {}

    def promising(self, category: np.ndarray, key: np.ndarray) -> np.ndarray:
        """Mask of the samples that ``offer`` would look at: most of a long stream are not."""
        if self.key.shape[1] == 0:
            return np.zeros(len(key), bool)
        return key > self.key[category, -1]

    def grow(self, categories: int) -> None:
        """Room for more categories."""
        more = Ranking(categories - len(self.key), self.key.shape[1])
        for name in ("key", "index", "position", "signature"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(more, name)]))

    def offer(
        self,
        category: np.ndarray,
        key: np.ndarray,
        index: np.ndarray,
        ids: Sequence[str],
        position: np.ndarray,
        signature: np.ndarray,
    ) -> None:
        """Consider samples for the categories that they were given to. Signature 0 means none."""
        promising = np.flatnonzero(self.promising(category, key))
        order = promising[np.lexsort((index[promising], -key[promising]))]
        for row in order:
            c = int(category[row])
            if key[row] > self.key[c, -1]:
                entry = (key[row], index[row], position[row], signature[row])
                self._insert(c, entry, ids[row])

    def _insert(self, c: int, entry: tuple[Any, ...], name: str) -> None:
        kept = []
        for other in zip(self.key[c], self.index[c], self.position[c], self.signature[c]):
            if other[1] < 0:
                break
            if other[1] == entry[1] or _alike(other[3], entry[3]):
                if other[0] >= entry[0]:
                    return
                self.ids.pop(int(other[1]), None)
            else:
                kept.append(other)
        kept.append(entry)
        kept.sort(key=lambda e: (-e[0], e[1]))
        slots = self.key.shape[1]
        self.ids[int(entry[1])] = name
        for left in kept[slots:]:
            self.ids.pop(int(left[1]), None)
        kept = kept[:slots]
        n = len(kept)
        columns: tuple[np.ndarray, ...] = (self.key, self.index, self.position, self.signature)
        for column, empty, values in zip(columns, (-np.inf, -1, -1, 0), zip(*kept)):
            column[c, :n] = values
            column[c, n:] = empty

    def of(self, category: int) -> list[dict[str, Any]]:
        """The samples kept for a category: index, id, position in the source, score."""
        return [
            {
                "index": int(index),
                "id": self.ids[int(index)],
                "position": int(position),
                "score": float(key),
            }
            for key, index, position in zip(
                self.key[category], self.index[category], self.position[category]
            )
            if index >= 0
        ]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {
            "key": self.key.copy(),
            "index": self.index.copy(),
            "position": self.position.copy(),
            "signature": self.signature.view(np.int64).copy(),
        }
        return arrays, {"ids": {str(index): name for index, name in sorted(self.ids.items())}}

    def load(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        for name in ("key", "index", "position"):
            setattr(self, name, np.array(arrays[name]))
        self.signature = np.array(arrays["signature"]).view(np.uint64)
        self.ids = {int(index): name for index, name in values["ids"].items()}


def _alike(one: np.uint64, other: np.uint64) -> bool:
    if one == 0 or other == 0:
        return False
    return (int(one) ^ int(other)).bit_count() <= _SAME_BITS
