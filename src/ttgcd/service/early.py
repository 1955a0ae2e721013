"""Batches of a stream that are encoded while its method is busy with an earlier one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from ttgcd.streams.base import Batch
from ttgcd.vlm.encoder import Encoder

_Range = tuple[int, int]


class EarlyBatches:
    """``encode(begin, end, encoder)`` makes the batch of the images from ``begin`` to ``end``."""

    def __init__(self, encode: Callable[[int, int, Encoder], Batch]) -> None:
        self._encode = encode
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ttgcd-encode")
        self._lock = threading.Lock()
        self._coming: dict[_Range, tuple[Encoder, Future[Batch]]] = {}

    def begin(self, first: int, end: int, size: int, most: int, encoder: Encoder) -> None:
        """Encode the whole batches from ``first`` to ``end``, at most so many; forget those of
        another encoder, and those before."""
        starts = range(first, min(end - size + 1, first + most * size), size)
        with self._lock:
            self._coming = {
                key: made
                for key, made in self._coming.items()
                if made[0] is encoder and key[0] >= first
            }
            for key in ((start, start + size) for start in starts):
                if key not in self._coming:
                    self._coming[key] = encoder, self._pool.submit(self._encode, *key, encoder)

    def take(self, begin: int, end: int, encoder: Encoder) -> Batch | None:
        """The batch, waited for if need be; None when this encoder was not asked for it."""
        with self._lock:
            by, coming = self._coming.pop((begin, end), (None, None))
        return coming.result() if coming is not None and by is encoder else None

    def stop(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
