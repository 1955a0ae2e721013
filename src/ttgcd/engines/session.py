"""One stream through one method: encode, answer, hand the answers to the sinks.

The folder run, the live service and the Ray run are callers of the same session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ttgcd.engines.ahead import ahead_of
from ttgcd.engines.chop import Chopper
from ttgcd.engines.foretold import observed
from ttgcd.engines.in_order import blas_threads, every_blas_thread, in_order, one_blas_thread
from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Caller, Method, Task
from ttgcd.prototypes.count import CountEstimate, estimate_novel_count
from ttgcd.storage.finite import finite_rows
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch

if TYPE_CHECKING:
    from ttgcd.vlm.encoder import Encoder  # streams of embeddings do without torch

#: Rows that are revised together when a method asks to answer for all samples again.
REVISED_AT_ONCE = 4096


class Sink(Protocol):
    """Takes answers as they come. ``batch`` is None for revisions of rows that came before."""

    def write(self, batch: Batch | None, rows: Answer) -> None: ...


class FeatureStore(Protocol):
    """Keeps the features of all samples, for methods that answer again."""

    def read(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Answered(Batch):
    """A batch that a copy of the method has observed elsewhere (``engines/rounds.py``)."""

    answer: Answer = field(default_factory=Answer.empty)


class Session:
    """A method on a stream.

    Parameters
    ----------
    method, task
        What runs, and what it is told.
    sinks
        Who hears of the answers, in this order.
    batch_size
        What arrives is re-chopped into batches of this size; None hands it on as it comes.
    caller
        Whom the method may turn to within a batch.
    store
        The features of all samples seen; needed by methods that revise.
    begins_with
        The state of an earlier stream of the same method: this one goes on learning from there.
        What the method says about samples of the earlier stream is heard by nobody.

    Attributes
    ----------
    encoder
        What encodes the next batch; None for a stream of embeddings.
    seconds
        Time spent waiting for "input" and in "encode", "method" and "sinks".
    estimate
        How L was found, when it was not given and the method does not count for itself.
    first
        The stream index of the first sample: above 0 after an earlier stream.
    """

    def __init__(
        self,
        method: Method,
        task: Task,
        sinks: Sequence[Sink] = (),
        *,
        batch_size: int | None = None,
        caller: Caller | None = None,
        store: FeatureStore | None = None,
        begins_with: State | None = None,
    ) -> None:
        self.method = method
        self.task = task
        self.sinks = tuple(sinks)
        self.store = store
        self.seconds = {"input": 0.0, "encode": 0.0, "method": 0.0, "sinks": 0.0}
        self.estimate: CountEstimate | None = None
        self._chopper = Chopper(batch_size) if batch_size is not None else None
        self._counted: list[np.ndarray] = []
        self._alone = False  # BLAS keeps to one thread anyway
        self.encoder: Encoder | None = None if task.vlm is None else task.encoder()
        method.caller = caller or Caller()
        method.start(task)
        self.first = 0
        if begins_with is not None:
            self._load_method(begins_with)
            self.first = method.seen

    # -- the stream ---------------------------------------------------------------------------

    def push(self, batch: Batch) -> list[Answer]:
        """Take what has arrived; the answers of every batch that became whole."""
        if self._chopper is None and batch.steps > 1:
            return self._observe_block(batch)
        whole = [batch] if self._chopper is None else self._chopper.push(batch)
        return [self._observe(part) for part in whole]

    def finish(self) -> Answer:
        """The stream is over: the last batch, the last revisions."""
        if self._chopper is not None:
            for batch in self._chopper.flush():
                self._observe(batch)
        if self.method.wants_count and self._counted:
            self._settle()
        with self._timed("method"):
            answer = self.method.finish()
        self._deliver(None, answer)
        return answer

    def predict(self, batch: Batch) -> Answer:
        """Answer without learning; nothing is remembered and no sink hears of it."""
        return self.method.predict(self._encoded(batch, self.encoder))

    def waiting(self) -> tuple[Batch, ...]:
        """What has arrived and is not a whole batch yet."""
        return () if self._chopper is None else self._chopper.waiting

    def drive(
        self,
        stream: Iterable[Batch],
        after_batch: Callable[[Batch], None] | None = None,
        at_end: Callable[[], None] | None = None,
        ahead: bool = False,
    ) -> None:
        """All of a stream, and its end; ``at_end`` is called after the last batch, before the last
        revisions. With ``ahead`` batches may be taken before it is their turn (``ahead.py``)."""
        if ahead and self.encoder is not None and self._chopper is None:
            stream = ahead_of(stream, self)
        # Asking every library for its threads costs more than the products of a batch: without an
        # encoder that needs them, once is enough.
        blas_threads()  # as many as there are before they are limited
        with one_blas_thread() if self.encoder is None else nullcontext():
            self._alone = self.encoder is None
            waiting = time.perf_counter()
            for batch in stream:
                self.seconds["input"] += time.perf_counter() - waiting
                self.push(batch)
                if after_batch is not None:
                    after_batch(batch)
                waiting = time.perf_counter()
            self.seconds["input"] += time.perf_counter() - waiting
            self._alone = False
        if at_end is not None:
            at_end()
        self.finish()

    def _observe(self, batch: Batch) -> Answer:
        if isinstance(batch, Answered):
            self._deliver(batch, batch.answer)
            return batch.answer
        answer = self._answered(batch)
        self._deliver(batch, answer)
        return answer

    def _answered(self, batch: Batch) -> Answer:
        with self._timed("encode"):
            ready = self._encoded(batch, self.encoder)
        if self.method.wants_count:
            self._count(ready)
        # The prototypes' products are small: BLAS threads that wait for the next one would take
        # the encoder's cores (benchmarks/speed). It keeps its own threads.
        with self._timed("method"), nullcontext() if self._alone else one_blas_thread():
            return observed(self.method, ready)

    def _observe_block(self, block: Batch) -> list[Answer]:
        """Batches that are all here: the method sees one after the other, and the sinks hear of
        many at once as long as each is answered by its own rows and nothing else happens."""
        said: list[Answer] = []
        waiting: list[Answer] = []

        def tell() -> None:
            nonlocal block
            if waiting:
                done, block = block.split(sum(map(len, waiting)))
                self._deliver(done, Answer.concat(waiting, done.features))
                waiting.clear()

        for part in block.parts():
            answer = self._answered(part)
            said.append(answer)
            if _only_its_rows(part, answer):
                waiting.append(answer)
                continue
            tell()
            block = block.split(len(part))[1]
            self._deliver(part, answer)
        tell()
        return said

    def _encoded(self, batch: Batch, encoder: Encoder | None) -> Batch:
        """The batch with what the method wants of it."""
        method = self.method
        features = batch.features
        if features is None and (method.wants_features or method.wants_count):
            if encoder is None or batch.images is None:
                raise InputError(
                    "images were given but no model: pass a model, or embeddings instead"
                )
            features = encoder(batch.images)
        if features is not None and batch.images is not None:  # encoded here, or ahead
            check_features(batch, features)
        return replace(
            batch, features=features, images=batch.images if method.wants_images else None
        )

    def _deliver(self, batch: Batch | None, answer: Answer) -> None:
        if answer.norms is not None:
            self.encoder = self.task.encoder(answer.norms)
        self._tell(batch, answer)
        if answer.reassign:
            self._reassign()

    def _reassign(self) -> None:
        if self.store is None:
            return  # answers on arrival are all that this caller can keep
        method, seen, store = self.method, self.method.seen, self.store

        def revised(start: int) -> Answer:
            stop = min(start + REVISED_AT_ONCE, seen)
            return method.revise(start, store.read(start - self.first, stop - self.first))

        starts = range(self.first, seen, REVISED_AT_ONCE)
        with closing(in_order(revised, starts)) as answers:
            while True:
                with self._timed("method"):
                    answer = next(answers, None)
                if answer is None:
                    return
                self._tell(None, answer)

    def _tell(self, batch: Batch | None, answer: Answer) -> None:
        if self.first:  # sinks count from the beginning of this stream
            answer = answer.at(answer.index >= self.first)
            answer = replace(answer, index=answer.index - self.first)
            batch = None if batch is None else replace(batch, start=batch.start - self.first)
        with self._timed("sinks"):
            check_finite(batch, answer)
            for sink in self.sinks:
                sink.write(batch, answer)

    def all_cores(self) -> AbstractContextManager[object]:
        """BLAS threads for large products of the method, where there is no encoder to disturb."""
        if not self._alone:
            return nullcontext()
        return every_blas_thread()

    # -- the number of novel categories -------------------------------------------------------

    def _count(self, batch: Batch) -> None:
        """Keep features until there are enough to estimate L, then tell the method."""
        assert batch.features is not None
        self._counted.append(batch.features)
        if sum(map(len, self._counted)) >= self.method.counts_on:
            self._settle()

    def _settle(self) -> None:
        """L from the pretrained features of the first samples (Sec. 5.3)."""
        features = np.concatenate(self._counted)[: self.method.counts_on]
        self._counted = []
        self.estimate = estimate_novel_count(features, self.task.n_known, seed=self.task.seed)
        self.method.settle(self.estimate.novel)

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        """What the session itself has to remember besides its method and its sinks."""
        arrays = {"counted": np.concatenate(self._counted)} if self._counted else {}
        trace = None if self.estimate is None else [list(point) for point in self.estimate.trace]
        found = None if self.estimate is None else [self.estimate.novel, self.estimate.k]
        return State(arrays, {"count": found, "trace": trace})

    def load(self, method: State, own: State) -> None:
        """Go on from the states of the method and of the session."""
        self._load_method(method)
        self._counted = [np.array(own.arrays["counted"])] if "counted" in own.arrays else []
        if own.values["count"] is not None:
            trace = tuple((int(k), float(score)) for k, score in own.values["trace"])
            novel, k = own.values["count"]
            self.estimate = CountEstimate(int(novel), int(k), trace)

    def _load_method(self, state: State) -> None:
        self.method.load_state_dict(state)
        if self.task.vlm is not None:
            self.encoder = self.task.encoder(self.method.norms())

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] += time.perf_counter() - began


def _only_its_rows(batch: Batch, answer: Answer) -> bool:
    """Whether a batch of embeddings is answered row by row, and nothing else is said."""
    if answer.norms is not None or answer.reassign or answer.features is not batch.features:
        return False
    return len(answer) == len(batch) and int(answer.index[0]) == batch.start


def check_finite(batch: Batch | None, rows: Answer) -> None:
    """Stop at the batch where NaN or infinite values arise, before any sink has seen them."""
    bad = ~(np.isfinite(rows.score) & np.isfinite(rows.margin))
    if rows.features is not None:
        bad |= ~finite_rows(rows.features)
    if not bad.any():
        return
    where = "when earlier answers were revised"
    if batch is not None:
        offsets = rows.index[bad] - batch.start
        ids = [batch.ids[at] for at in offsets if 0 <= at < len(batch)]
        named = ", ".join(repr(name) for name in ids[:3]) + (", ..." if len(ids) > 3 else "")
        where = f"in the batch of samples {batch.start} to {batch.start + len(batch) - 1}"
        where += f" ({named})" if ids else ""
    raise _not_finite(int(bad.sum()), where)


def check_features(batch: Batch, features: np.ndarray) -> None:
    """Before they get into a buffer, where nobody knows whose they are."""
    broken = np.flatnonzero(~finite_rows(features))
    if len(broken):
        where = (
            f"from {batch.ids[broken[0]]!r} on, in the batch of samples {batch.start} to "
            f"{batch.start + len(batch) - 1}"
        )
        raise _not_finite(len(broken), where)


def _not_finite(count: int, where: str) -> InputError:
    return InputError(
        f"NaN or infinite features or scores for {count} samples {where}: the model's weights may "
        "be damaged, or its number format may overflow (use float32)"
    )
