"""Batches of one size, however the samples arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ttgcd.streams.base import Batch


class Chopper:
    """Re-chops what arrives into batches of ``size``: batch size is part of a method's meaning, so
    images that come one by one must get the same answers as a folder."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._waiting: list[Batch] = []
        self._count = 0

    @property
    def waiting(self) -> tuple[Batch, ...]:
        """What has arrived and not been handed on."""
        return tuple(self._waiting)

    def push(self, batch: Batch) -> Iterator[Batch]:
        """Whole batches, as far as the samples reach."""
        if not self._waiting and len(batch) == self.size:
            yield batch
            return
        while len(batch):
            first, batch = batch.split(min(len(batch), self.size - self._count))
            self._waiting.append(first)
            self._count += len(first)
            if self._count == self.size:
                yield self._take()

    def flush(self) -> Iterator[Batch]:
        """The last batch, which may be short."""
        if self._waiting:
            yield self._take()

    def _take(self) -> Batch:
        whole = joined(self._waiting)
        self._waiting, self._count = [], 0
        return whole


def joined(parts: Sequence[Batch]) -> Batch:
    """Consecutive batches as one."""
    if len(parts) == 1:
        return parts[0]
    images = [part.images for part in parts if part.images is not None]
    features = [part.features for part in parts if part.features is not None]
    if images:
        import torch
    return Batch(
        ids=tuple(name for part in parts for name in part.ids),
        start=parts[0].start,
        positions=tuple(at for part in parts for at in part.positions),
        next_position=parts[-1].next_position,
        images=torch.cat(images) if images else None,
        features=np.concatenate(features) if features else None,
        places=tuple(place for part in parts for place in part.all_places()),
    )
