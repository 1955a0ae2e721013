"""Encode the next batches while the method is busy with one: in a thread, in the same order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from ttgcd.methods.base import Method
from ttgcd.streams.base import Batch
from ttgcd.vlm.encoder import Encoder

#: Batches, and bytes of their images, that may wait for the method.
MOST, MOST_BYTES = 16, 64 * 2**20


class Encodes(Protocol):
    """A session, seen from here."""

    method: Method
    encoder: Encoder | None
    seconds: dict[str, float]


def depth(images: torch.Tensor, times: int = 1) -> int:
    """How many batches of ``times`` these images may be encoded ahead."""
    return max(1, min(MOST, MOST_BYTES // max(1, images.nbytes * times)))


def only_features(method: Method) -> bool:
    """Whether features are all that a method wants of a batch, so that they can be made early."""
    return method.wants_features and not method.wants_images and not method.wants_count


def encoded_ahead(stream: Iterable[Batch], session: Encodes) -> Iterator[Batch]:
    """The batches of a stream that does not wait for anybody, with their features.

    A batch is handed on as soon as it is encoded. One whose encoder has been replaced meanwhile,
    and one of which the method wants the images, comes without features.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="ttgcd-encode")
    waiting: deque[tuple[Batch, Encoder | None, Future[np.ndarray] | None]] = deque()
    try:
        for batch in stream:
            encoder, coming = session.encoder, None
            early = only_features(session.method) and batch.features is None
            if early and encoder is not None and batch.images is not None:
                coming = pool.submit(encoder, batch.images)
            waiting.append((batch, encoder, coming))
            most = 1 if batch.images is None else depth(batch.images)
            while waiting and (len(waiting) > most or _ready(waiting[0][2])):
                yield _encoded(session, *waiting.popleft())
        while waiting:
            yield _encoded(session, *waiting.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ready(coming: Future[np.ndarray] | None) -> bool:
    return coming is None or coming.done()


def _encoded(
    session: Encodes, batch: Batch, encoder: Encoder | None, coming: Future[np.ndarray] | None
) -> Batch:
    if coming is None or encoder is not session.encoder:
        return batch
    began = time.perf_counter()
    features = coming.result()
    spent = time.perf_counter() - began
    session.seconds["encode"] += spent  # who drives the session counts it as waiting for input
    session.seconds["input"] -= spent
    return replace(batch, features=features)
