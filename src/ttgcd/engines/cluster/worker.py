"""What runs in a worker of the pool: read, decode and encode one range of a stream.

A worker makes its batch with the very ``Stream`` and ``Encoder`` of the local engine, so a batch
holds the same samples and its features the same bits, whoever made it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.engines.foretold import AnswersByFit
from ttgcd.engines.in_order import one_blas_thread
from ttgcd.engines.rounds import Shard, ShardDone, observe_shard
from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch, Rejected, Source
from ttgcd.streams.decode import MAX_PIXELS
from ttgcd.streams.stream import Stream

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM
    from ttgcd.vlm.encoder import Encoder, Precision

Norms = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Model:
    """Where a worker gets its weights: by name, once, or as they are for a model in memory."""

    name: str
    device: str
    fingerprint: str
    itself: VLM | None = None

    def load(self) -> VLM:
        if self.itself is not None:
            return self.itself
        from ttgcd.vlm import load_vlm

        vlm = load_vlm(self.name, self.device)
        if vlm.fingerprint != self.fingerprint:
            raise InputError(
                f"a worker finds other weights under the name {self.name!r} than this process: "
                "install the same model on every node"
            )
        return vlm


@dataclass(frozen=True)
class MethodCopy:
    """What it takes to make a copy of a method in a worker."""

    method: type[Method]
    config: dict[str, Any]
    task: Task

    @classmethod
    def of(cls, method: Method) -> MethodCopy:
        return cls(type(method), method.config(), replace(method.task, vlm=None))

    def make(self, state: State) -> Method:
        made = self.method(**self.config)
        made.start(self.task)
        made.load_state_dict(state)
        return made


@dataclass(frozen=True)
class StreamFacts:
    """All that a worker has to know of a stream; sent once."""

    source: Source
    batch_size: int
    shuffle_seed: int | None
    precision: Precision = "fp32"
    max_pixels: int = MAX_PIXELS
    copy: MethodCopy | None = None


@dataclass(frozen=True)
class Range:
    """One piece of work: the batch that begins at a place of the stream.

    ``version`` counts the encoders of the stream; ``fit`` tells by which fit of the method the
    rows are to be answered, if they are. ``facts``, ``norms`` and ``answering`` are references
    in lists, which Ray leaves alone: a worker fetches them once and not with every call.
    """

    stream: str
    facts: list[Any]
    place: int
    version: int
    norms: list[Any]
    features: bool
    images: bool
    fit: int | None = None
    answering: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class ShardRange:
    """A shard of a round (``engines/rounds.py``)."""

    work: Range
    shard: Shard


@dataclass(frozen=True)
class Done:
    """What a worker found from a place on. ``batch`` is None when every sample was set aside."""

    place: int
    after: int  # where the next range begins
    version: int
    batch: Batch | None
    pixels: np.ndarray | None
    rejected: tuple[Rejected, ...]
    seconds: float
    answer: Answer | None = None  # under the fit that the range named
    fit: int = -1


class Worker:
    """Holds the weights, and for every stream its source and its newest encoder."""

    def __init__(self, model: Model | None, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._vlm = None if model is None else model.load()
        self._streams: dict[str, tuple[StreamFacts, Stream]] = {}
        self._encoders: dict[str, tuple[int, Encoder]] = {}
        self._methods: dict[str, tuple[int, Method]] = {}

    def encode(self, work: Range) -> Done:
        began = time.perf_counter()
        facts, stream = self._stream(work)
        stream.start_position = stream.start_index = work.place
        batch = next(iter(stream), None)
        stream.close()
        pixels = None
        if batch is not None:
            features = batch.features
            if features is None and work.features:
                assert batch.images is not None
                features = self._encoder(work, facts.precision)(batch.images)
            if batch.images is not None and work.images:
                pixels = batch.images.numpy()
            batch = replace(batch, images=None, features=features)
        answer = self._answer(work, facts, batch)
        return Done(
            place=work.place,
            after=stream.total if batch is None else batch.next_position,
            version=work.version,
            batch=batch,
            pixels=pixels,
            rejected=tuple(stream.rejected),
            seconds=time.perf_counter() - began,
            answer=answer,
            fit=-1 if work.fit is None else work.fit,
        )

    def observe(self, given: ShardRange) -> ShardDone:
        """Read, decode, encode and answer one shard."""
        facts, stream = self._stream(given.work)
        encoder = None if self._vlm is None else self._encoder(given.work, facts.precision)
        if stream.source.kind == "embeddings":
            encoder = None
        assert facts.copy is not None
        method = facts.copy.make(given.shard.snapshot)
        return observe_shard(method, stream, encoder, given.shard)

    def process(self) -> int:
        """Answers once the weights are there."""
        return os.getpid()

    def forget(self, stream: str) -> None:
        """A stream is over."""
        self._encoders.pop(stream, None)
        self._methods.pop(stream, None)
        if (found := self._streams.pop(stream, None)) is not None:
            found[0].source.close()

    def _stream(self, work: Range) -> tuple[StreamFacts, Stream]:
        if work.stream not in self._streams:
            facts: StreamFacts = _fetched(work.facts)
            preprocess = None if self._vlm is None else self._vlm.preprocess
            stream = Stream(
                facts.source,
                preprocess,
                facts.batch_size,
                facts.shuffle_seed,
                workers=0,
                max_pixels=facts.max_pixels,
            )
            self._streams[work.stream] = facts, stream
        return self._streams[work.stream]

    def _answer(self, work: Range, facts: StreamFacts, batch: Batch | None) -> Answer | None:
        """The rows of a batch by a copy of the method, if that was asked for."""
        if work.fit is None or facts.copy is None or batch is None or batch.features is None:
            return None
        fit, method = self._methods.get(work.stream, (None, None))
        if method is None or fit != work.fit:
            method = facts.copy.make(_fetched(work.answering))
            self._methods[work.stream] = work.fit, method
        assert isinstance(method, AnswersByFit)
        with one_blas_thread():  # as in the session
            return method.answer(batch)

    def _encoder(self, work: Range, precision: Precision) -> Encoder:
        version, encoder = self._encoders.get(work.stream, (None, None))
        if encoder is None or version != work.version:
            assert self._vlm is not None
            norms: Norms | None = _fetched(work.norms) if work.norms else None
            encoder = self._vlm.encoder(norms, precision)
            self._encoders[work.stream] = work.version, encoder
        return encoder


def _fetched(reference: list[Any]) -> Any:
    import ray

    return ray.get(reference[0])
