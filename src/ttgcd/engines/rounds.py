"""Throughput mode: shards of a round are answered side by side, each from the same snapshot.

The exact engines observe one batch after the other. Here a round of ``shards`` x ``sync_every``
batches is cut into shards; each begins with the state that all had at the end of the round before,
observes its own batches, and the shards' prototypes are merged when the round is over. The answers
depend on the number of shards and on ``sync_every``, and on nothing else: not on which worker was
first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ttgcd.engines.session import Answered, check_features
from ttgcd.errors import InputError
from ttgcd.methods.base import Method
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch, Rejected
from ttgcd.streams.stream import Stream

if TYPE_CHECKING:
    from ttgcd.vlm.encoder import Encoder


@runtime_checkable
class Mergeable(Protocol):
    """A method whose copies can go different ways for a while and become one again."""

    @property
    def mergeable(self) -> bool:
        """Whether it is past its warm-up: what follows may be cut into shards."""
        ...

    def merge(self, shards: Sequence[State], samples: int) -> None:
        """Take in what copies of this state have learned from ``samples`` further samples."""
        ...


@dataclass(frozen=True)
class Shard:
    """Places begin .. end - 1 of a stream, to be observed from a snapshot."""

    begin: int
    end: int
    snapshot: State


@dataclass(frozen=True)
class ShardDone:
    """What a shard has answered, and what it has learned."""

    batches: tuple[Answered, ...]
    rejected: tuple[Rejected, ...]
    state: State


def check_mergeable(method: Method) -> None:
    if not hasattr(type(method), "merge"):
        raise InputError(
            f"sync_every goes with methods whose prototypes can be merged (pact), not {method.name}"
        )


def observe_shard(
    method: Method, stream: Stream, encoder: Encoder | None, shard: Shard
) -> ShardDone:
    """Let ``method`` observe the places of a shard, batch by batch."""
    method.load_state_dict(shard.snapshot)
    whole = stream.total
    stream.start_position = stream.start_index = shard.begin
    stream.total = shard.end
    answered = []
    try:
        for batch in stream:
            features = batch.features
            if features is None:
                assert encoder is not None and batch.images is not None
                features = encoder(batch.images)
            check_features(batch, features)
            batch = replace(batch, features=features, images=None)
            answer = method.observe(batch)
            answered.append(Answered(**vars(batch), answer=answer))
    finally:
        stream.total = whole
    return ShardDone(tuple(answered), tuple(stream.rejected), method.state_dict())


class RoundStream(Stream):
    """A stream that hands out exact batches until the method is warm, then answered rounds.

    ``observe`` maps shards to what became of them, in the same order; ``exact`` opens the exact
    stream at a place and an index. The method is merged before the last batch of a round is handed
    out, so that a checkpoint after it holds all of the round.
    """

    def __init__(
        self,
        exact: Stream,
        method: Method,
        observe: Callable[[Sequence[Shard]], Sequence[ShardDone]],
        shards: int,
        sync_every: int,
    ) -> None:
        if sync_every < 1:
            raise InputError(f"sync_every must be 1 or more, got {sync_every}")
        check_mergeable(method)
        self.exact = exact
        self.method = method
        self.observe = observe
        self.shards = shards
        self.sync_every = sync_every
        for name in ("source", "order", "total", "rejected", "start_position", "start_index"):
            setattr(self, name, getattr(exact, name))
        self.batch_size = exact.batch_size
        self._pool, self._running = None, None

    def close(self) -> None:
        super().close()
        self.exact.close()

    def _batches(self) -> Generator[Batch, None, None]:
        method = self.method
        assert isinstance(method, Mergeable)
        place, index = self.start_position, self.start_index
        if not method.mergeable:
            for batch in self.exact:
                yield batch
                place, index = batch.next_position, index + len(batch)
                if method.mergeable:
                    break
            else:
                return
            self.exact.close()
        while place < self.total:
            done = self.observe(self._round(place))
            place = min(place + self.shards * self.sync_every * self.batch_size, self.total)
            yield from self._answered(done, place, index)
            index += sum(len(batch) for shard in done for batch in shard.batches)

    def _round(self, place: int) -> list[Shard]:
        size = self.sync_every * self.batch_size
        begins = range(place, min(place + self.shards * size, self.total), size)
        snapshot = self.method.state_dict()
        return [Shard(begin, min(begin + size, self.total), snapshot) for begin in begins]

    def _answered(
        self, done: Sequence[ShardDone], after: int, index: int
    ) -> Generator[Batch, None, None]:
        """The batches of a round in stream order, at their stream indices."""
        assert isinstance(self.method, Mergeable)
        aside = deque(sorted((r for d in done for r in d.rejected), key=lambda r: r.place))
        batches = [batch for shard in done for batch in shard.batches]
        samples = sum(map(len, batches))
        if not batches:
            self.method.merge([shard.state for shard in done], 0)
        for number, batch in enumerate(batches):
            last = number == len(batches) - 1
            if last:
                self.method.merge([shard.state for shard in done], samples)
            until = after if last else batch.next_position
            while aside and aside[0].place < until:
                self.rejected.append(aside.popleft())
            shift = index - batch.start
            answer = replace(batch.answer, index=batch.answer.index + np.int64(shift))
            yield replace(batch, start=index, next_position=until, answer=answer)
            index += len(batch)
        self.rejected.extend(aside)
