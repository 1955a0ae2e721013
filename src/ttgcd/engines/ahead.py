"""Encode the next batches while the method is busy with one: in a thread, in the same order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ttgcd.methods.base import Method
from ttgcd.streams.base import Batch

if TYPE_CHECKING:
    import torch  # a stream of embeddings does without it

    from ttgcd.vlm.encoder import Encoder

#: Batches, and bytes of their images, that may wait for the method.
MOST, MOST_BYTES = 16, 64 * 2**20
#: Images of fewer bytes are those of a small model, whose batches are encoded side by side, on one
#: thread each: several threads on so little wait for each other, and for those that decode.
SMALL_BYTES = 2**16


class Drives(Protocol):
    """A session, seen from here."""

    method: Method
    encoder: Encoder | None
    seconds: dict[str, float]


@dataclass(frozen=True)
class _Early:
    """A batch, and the features that an encoder makes of it, if it does."""

    batch: Batch
    encoder: Encoder | None
    features: Future[np.ndarray] | None


def depth(images: torch.Tensor | None) -> int:
    """How many batches with images like these may wait."""
    size = 0 if images is None else images.nbytes
    return max(1, min(MOST, MOST_BYTES // max(1, size)))


def only_features(method: Method) -> bool:
    """Whether features are all that a method wants of a batch, so that they can be made early."""
    return method.wants_features and not method.wants_images and not method.wants_count


def ahead_of(stream: Iterable[Batch], session: Drives) -> Iterator[Batch]:
    """The batches of a stream that does not wait for anybody, with their features.

    A batch is handed on as soon as it is encoded. One whose encoder has been replaced meanwhile,
    and one of which the method wants the images, comes without features.
    """
    pool: ThreadPoolExecutor | None = None
    threads = 0
    waiting: deque[_Early] = deque()
    try:
        for batch in stream:
            encoder, coming = session.encoder, None
            if encoder is not None and batch.features is None and only_features(session.method):
                assert batch.images is not None
                if pool is None:
                    pool, threads = _pool(batch.images)
                coming = pool.submit(encoder, batch.images)
            waiting.append(_Early(batch, encoder, coming))
            most = depth(batch.images)
            while waiting and (len(waiting) > most or _ready(waiting[0])):
                yield _encoded(waiting.popleft(), session)
        while waiting:
            yield _encoded(waiting.popleft(), session)
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
            _give_threads(threads)


def _pool(images: torch.Tensor) -> tuple[ThreadPoolExecutor, int]:
    """What encodes batches like this one, and the threads that torch has to itself without it;
    features do not depend on how many there are."""
    import torch

    threads = torch.get_num_threads()
    side_by_side = images[:1].nbytes < SMALL_BYTES
    pool = ThreadPoolExecutor(
        threads if side_by_side else 1,
        thread_name_prefix="ttgcd-ahead",
        initializer=partial(_give_threads, 1) if side_by_side else None,
    )
    return pool, threads


def _give_threads(count: int) -> None:
    """To products that this thread asks for; those of MKL take it as said to all threads, so it has
    to be said again when the pool is gone."""
    import torch

    torch.set_num_threads(count)


def _ready(early: _Early) -> bool:
    return early.features is None or early.features.done()


def _encoded(early: _Early, session: Drives) -> Batch:
    if early.features is None or early.encoder is not session.encoder:
        return early.batch
    began = time.perf_counter()
    features = early.features.result()
    spent = time.perf_counter() - began
    session.seconds["encode"] += spent  # who drives the session counts it as waiting for input
    session.seconds["input"] -= spent
    return replace(early.batch, features=features)
