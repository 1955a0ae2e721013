"""Encode the next batches while the method is busy with one: in a thread, in the same order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ttgcd.methods.base import Method
from ttgcd.streams.base import Batch

if TYPE_CHECKING:
    import torch  # a stream of embeddings does without it

    from ttgcd.vlm.encoder import Encoder

#: Batches, and bytes of their images, that may wait for the method.
MOST, MOST_BYTES = 16, 64 * 2**20

Work = Callable[[Batch], Batch]


class Drives(Protocol):
    """A session, seen from here."""

    method: Method
    encoder: Encoder | None
    seconds: dict[str, float]


def depth(images: torch.Tensor | None, times: int = 1) -> int:
    """How many batches of ``times`` these images may wait."""
    size = 0 if images is None else images.nbytes * times
    return max(1, min(MOST, MOST_BYTES // max(1, size)))


def only_features(method: Method) -> bool:
    """Whether features are all that a method wants of a batch, so that they can be made early."""
    return method.wants_features and not method.wants_images and not method.wants_count


def ahead_of(stream: Iterable[Batch], session: Drives) -> Iterator[Batch]:
    """The batches of a stream that does not wait for anybody, with their features.

    A batch is handed on as soon as it is encoded. One whose encoder has been replaced meanwhile,
    and one of which the method wants the images, comes without features.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="ttgcd-ahead")
    waiting: deque[tuple[Batch, Encoder | None, Future[Batch] | None]] = deque()
    try:
        for batch in stream:
            encoder = session.encoder
            work = _encoding(session, batch)
            coming = None if work is None else pool.submit(work, batch)
            waiting.append((batch, encoder, coming))
            most = depth(batch.images)
            while waiting and (len(waiting) > most or _done(waiting[0][2])):
                yield _made(session, *waiting.popleft())
        while waiting:
            yield _made(session, *waiting.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _encoding(session: Drives, batch: Batch) -> Work | None:
    encoder = session.encoder
    if encoder is None or batch.features is not None or not only_features(session.method):
        return None

    def encode(batch: Batch) -> Batch:
        assert batch.images is not None
        return replace(batch, features=encoder(batch.images))

    return encode


def _done(coming: Future[Batch] | None) -> bool:
    return coming is None or coming.done()


def _made(
    session: Drives, batch: Batch, encoder: Encoder | None, coming: Future[Batch] | None
) -> Batch:
    if coming is None or encoder is not session.encoder:
        return batch
    began = time.perf_counter()
    made = coming.result()
    spent = time.perf_counter() - began
    session.seconds["encode"] += spent  # who drives the session counts it as waiting for input
    session.seconds["input"] -= spent
    return made
