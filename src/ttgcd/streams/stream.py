"""From a source to batches: ordered, decoded ahead in the background, resumable."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.streams.base import Batch, Rejected, Source
from ttgcd.streams.decode import MAX_PIXELS, decode, reason_of

if TYPE_CHECKING:
    import torch  # a stream of embeddings does without it

# Samples that one background task reads. Independent of the number of workers, so that neither
# the order nor the grouping of the work depends on it. Embeddings are small: many batches at once.
_CHUNK = 16
_EMBEDDINGS_AT_ONCE = 4096

_Loaded = list["tuple[int, torch.Tensor | np.ndarray] | Rejected"]


@dataclass(frozen=True)
class _Block:
    """Embeddings that were read together, none of them set aside: whole batches."""

    places: range
    values: np.ndarray


def stream_order(length: int, shuffle_seed: int | None) -> np.ndarray:
    """Source position at each place of the stream.

    Shuffled by numpy's ``RandomState(seed).permutation``, whose result numpy keeps the same in
    all versions; a resumed run and another machine see the same order.
    """
    if shuffle_seed is None:
        return np.arange(length)
    if not 0 <= shuffle_seed < 2**32:
        raise InputError(f"the shuffle seed must be in 0 .. 2**32 - 1, not {shuffle_seed}")
    order = np.random.RandomState(shuffle_seed).permutation(length)
    return order.astype(np.int32) if length < 2**31 else order  # half the memory


class Stream:
    """Batches of a source in stream order.

    Every batch holds ``batch_size`` accepted samples but the last. Samples that cannot be read or
    decoded are set aside in ``rejected``, which at any time lists exactly those before the
    ``next_position`` of the batch handed out last (all of them after the end). To go on after a
    batch, give ``start_position=batch.next_position`` and ``start_index=batch.start + len(batch)``
    to a new stream on the same source: its batches equal those of an uninterrupted one.

    ``workers`` threads decode at most ``ahead`` batches ahead; 0 workers decode in the caller.
    With ``blocks`` embeddings come as the blocks in which they are read, which hold several batches
    (``Batch.step``). ``shown`` is called with every image's position and pixels once it is decoded,
    by the thread that did it.
    """

    shown: Callable[[int, np.ndarray], None] | None = None
    #: Whether what a batch holds does not depend on the answers to those before it.
    independent: bool = True

    def __init__(
        self,
        source: Source,
        preprocess: Callable[..., torch.Tensor] | None = None,
        batch_size: int = 128,
        shuffle_seed: int | None = None,
        start_position: int = 0,
        start_index: int | None = None,
        workers: int = 2,
        ahead: int = 4,
        max_pixels: int = MAX_PIXELS,
        blocks: bool = False,
    ) -> None:
        if batch_size < 1:
            raise InputError(f"the batch size must be at least 1, not {batch_size}")
        if workers < 0 or ahead < 1:
            raise InputError(f"workers ({workers}) must be >= 0 and ahead ({ahead}) >= 1")
        if not 0 <= start_position <= len(source):
            raise InputError(
                f"cannot start at position {start_position} of a source of {len(source)} samples"
            )
        if source.kind == "images" and preprocess is None:
            raise ValueError("a stream of images needs the preprocessing of the model")
        self.source = source
        self.preprocess: Any = preprocess
        self.batch_size = batch_size
        self.start_position = start_position
        self.start_index = start_position if start_index is None else start_index
        self.workers = workers
        self.ahead = ahead
        self.max_pixels = max_pixels
        self.blocks = blocks
        self.rejected: list[Rejected] = []
        self.total = len(source)  # samples in the source, accepted or not
        self.order = stream_order(self.total, shuffle_seed)
        if shuffle_seed is not None:
            source.prepare_random()
        self._pool: ThreadPoolExecutor | None = None
        # Weak, so that an iterator left by ``break`` is closed at once and not by the collector.
        self._running: weakref.ref[Generator[Batch, None, None]] | None = None

    def __iter__(self) -> Iterator[Batch]:
        """Start (again) at ``start_position``."""
        self.close()
        self.rejected.clear()
        batches = self._batches()
        self._running = weakref.ref(batches)
        return batches

    def close(self) -> None:
        """Stop an iteration that was left early and wait for its background threads."""
        running = self._running and self._running()
        if running:
            running.close()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        self._running = self._pool = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _batches(self) -> Generator[Batch, None, None]:
        taken: list[tuple[int, torch.Tensor | np.ndarray]] = []
        waiting: list[Rejected] = []  # set aside behind the batch that is being filled
        index = self.start_index
        for chunk in self._chunks():
            if isinstance(chunk, _Block):
                for batch in self._batches_of(chunk, index):
                    yield batch
                index += len(chunk.values)
                continue
            for loaded in chunk:
                if isinstance(loaded, Rejected):
                    waiting.append(loaded)
                    continue
                self.rejected += waiting
                waiting.clear()
                taken.append(loaded)
                if len(taken) == self.batch_size:
                    batch = self._batch(taken, index, taken[-1][0] + 1)
                    index += len(taken)
                    taken = []
                    yield batch
        self.rejected += waiting
        if taken:
            yield self._batch(taken, index, self.total)

    def _batches_of(self, block: _Block, index: int) -> Iterator[Batch]:
        begin, end = block.places.start, block.places.stop
        size = len(block.values) if self.blocks else self.batch_size
        for place in range(begin, end, size):
            places = range(place, min(place + size, end))
            positions = self.order[place : places.stop].tolist()
            yield Batch(
                ids=self.source.ids(positions),
                start=index + place - begin,
                positions=tuple(positions),
                next_position=places.stop,
                features=block.values[place - begin : places.stop - begin],
                places=tuple(places),
                step=self.batch_size if self.blocks else 0,
            )

    def _batch(
        self, taken: list[tuple[int, torch.Tensor | np.ndarray]], index: int, after: int
    ) -> Batch:
        places = tuple(place for place, _ in taken)
        positions = tuple(int(self.order[place]) for place in places)
        values = [value for _, value in taken]
        embedded = self.source.kind == "embeddings"
        return Batch(
            ids=self.source.ids(positions),
            start=index,
            positions=positions,
            next_position=after,
            images=None if embedded else _stacked(values),
            features=np.stack(values) if embedded else None,  # type: ignore[arg-type]
            places=places,
        )

    def _chunks(self) -> Iterator[_Loaded | _Block]:
        """Loaded samples in stream order, some of them loaded before they are asked for."""
        if self.source.kind == "images":
            size = min(_CHUNK, self.batch_size)
        else:  # whole batches
            size = self.batch_size * max(1, _EMBEDDINGS_AT_ONCE // self.batch_size)
        starts = range(self.start_position, self.total, size)
        tasks = (range(start, min(start + size, self.total)) for start in starts)
        stop = threading.Event()
        if not self.workers:
            for places in tasks:
                yield self._load(places, stop)
            return
        window = max(1, self.ahead * self.batch_size // size)
        if self.source.kind == "embeddings":
            window = 2  # one block is being read while the other is answered
        pending: deque[Future[_Loaded | _Block]] = deque()
        pool = self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="ttgcd-decode")
        wait = True
        try:
            while True:
                for places in islice(tasks, window - len(pending)):
                    pending.append(pool.submit(self._load, places, stop))
                if not pending:
                    return
                yield pending.popleft().result()
        except GeneratorExit:
            # Perhaps the garbage collector, in any thread and under any lock: waiting for the
            # workers here could be waiting forever. They end after the sample in hand.
            wait = False
            raise
        finally:
            stop.set()
            pool.shutdown(wait=wait, cancel_futures=True)

    def _decode(self, data: bytes) -> np.ndarray:
        from ttgcd.vlm.preprocess import Preprocess

        # Our preprocessing copies the pixels before this thread decodes the next image; somebody
        # else's might keep them.
        reuse = isinstance(self.preprocess, Preprocess)
        return decode(data, self.max_pixels, reuse=reuse)

    def _load(self, places: range, stop: threading.Event) -> _Loaded | _Block:
        positions = self.order[places.start : places.stop].tolist()
        together = self.source.read_many(positions)
        if together is not None:
            if self.source.kind == "embeddings":
                return _Block(places, together)
            return list(zip(places, self.preprocess(together)))
        loaded: _Loaded = []
        for place, position, data in zip(places, positions, self.source.read_each(positions)):
            if stop.is_set():  # the consumer has gone: nobody reads the rest
                break
            try:
                if isinstance(data, Exception):
                    raise data
                image = self._decode(data) if isinstance(data, bytes) else data
            except InputError:
                raise
            except (OSError, ValueError) as error:
                reason = reason_of(error)
                loaded.append(Rejected(self.source.id(position), position, reason, place))
                continue
            if self.source.kind == "embeddings":
                loaded.append((place, image))
                continue
            loaded.append((place, self.preprocess(image)))
            if self.shown is not None:
                self.shown(position, image)
        return loaded


def _stacked(images: list[Any]) -> torch.Tensor:
    import torch

    return torch.stack(images)
