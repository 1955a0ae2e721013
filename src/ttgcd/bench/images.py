"""Decoded images of a stream, kept for the methods and seeds that follow."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from ttgcd.streams.base import Source
from ttgcd.streams.stream import Stream
from ttgcd.vlm.preprocess import Preprocess

# Images that go into the hash of a stream; all labels do.
HASHED_IMAGES = 1000


class Chosen(Source):
    """Some samples of a source."""

    def __init__(self, source: Source, positions: np.ndarray) -> None:
        self.kind = source.kind  # type: ignore[misc]
        self._source, self._positions = source, positions

    def __len__(self) -> int:
        return len(self._positions)

    def id(self, position: int) -> str:
        return self._source.id(int(self._positions[position]))

    def read(self, position: int) -> bytes | np.ndarray:
        return self._source.read(int(self._positions[position]))

    def read_many(self, positions: Sequence[int]) -> np.ndarray | None:
        return self._source.read_many([int(self._positions[p]) for p in positions])

    def signature(self, position: int) -> str:
        return self._source.signature(int(self._positions[position]))


class Decoded(Source):
    """Every image of a source as the model takes it (uint8, resized and cropped), in memory."""

    def __init__(self, source: Source, preprocess: Preprocess, workers: int = 2) -> None:
        stream = Stream(source, preprocess, batch_size=256, workers=workers)
        self._source = source
        size = preprocess.size
        self.images = np.zeros((len(source), size, size, 3), np.uint8)
        for batch in stream:
            assert batch.images is not None
            self.images[list(batch.positions)] = batch.images.permute(0, 2, 3, 1).numpy()
        self.unreadable = {r.position: r.reason for r in stream.rejected}

    def __len__(self) -> int:
        return len(self.images)

    def id(self, position: int) -> str:
        return self._source.id(position)

    def read(self, position: int) -> np.ndarray:
        if position in self.unreadable:
            raise ValueError(self.unreadable[position])
        return self.images[position]

    def read_many(self, positions: Sequence[int]) -> np.ndarray | None:
        return None if self.unreadable else self.images[list(positions)]

    def signature(self, position: int) -> str:
        return self._source.signature(position)


def as_decoded(images: np.ndarray) -> torch.Tensor:
    """In the place of the model's preprocessing for images that have had it."""
    tensor = torch.from_numpy(images)
    return tensor.permute(2, 0, 1) if images.ndim == 3 else tensor.permute(0, 3, 1, 2).contiguous()


def choose(source: Source, labels: np.ndarray, limit: int | None) -> tuple[Source, np.ndarray]:
    """At most ``limit`` samples, drawn once and for all: every method and seed gets the same."""
    if limit is None or limit >= len(source):
        return source, labels
    positions = np.sort(np.random.RandomState(0).permutation(len(source))[:limit])
    return Chosen(source, positions), labels[positions]


def data_hash(source: Source, labels: np.ndarray) -> str:
    """A hash of a stream's contents, the same on every machine: how many images there are, their
    labels, and the bytes of at most a thousand of them, spread evenly."""
    digest = hashlib.sha256(np.asarray(labels, np.int64).tobytes())
    places = np.linspace(0, len(source) - 1, min(len(source), HASHED_IMAGES)).astype(int)
    for read in source.read_each(places.tolist()):
        if isinstance(read, Exception):
            read = b"unreadable"
        digest.update(read if isinstance(read, bytes) else np.ascontiguousarray(read).tobytes())
    return digest.hexdigest()[:32]
