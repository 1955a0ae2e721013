"""Shards of a round on the workers of a pool (``engines/rounds.py``)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from ttgcd.engines.cluster.pool import EncoderPool, Ticket, require_ray
from ttgcd.engines.cluster.stream import MOST_FAILURES, shared, unusable
from ttgcd.engines.cluster.worker import MethodCopy, Norms, Range, ShardRange, StreamFacts
from ttgcd.engines.rounds import Shard, ShardDone
from ttgcd.errors import InputError
from ttgcd.methods.base import Method
from ttgcd.streams.stream import Stream


class ShardsOnPool:
    """Lets the workers of a pool observe shards; those of a lost worker are handed out again."""

    def __init__(self, stream: Stream, method: Method, pool: EncoderPool, seed: int | None) -> None:
        facts = StreamFacts(
            stream.source,
            stream.batch_size,
            seed,
            method.task.precision,
            copy=MethodCopy.of(method),
        )
        self._method, self._pool = method, pool
        self._facts = [shared(facts)]
        self._name = uuid.uuid4().hex
        self._version = 0
        self._norms: Norms | None = None
        self._norms_reference: list[Any] = []

    def __call__(self, shards: Sequence[Shard]) -> list[ShardDone]:
        ray = require_ray()
        norms = self._method.norms()
        if norms is not self._norms:
            self._norms, self._version = norms, self._version + 1
            self._norms_reference = [] if norms is None else [ray.put(dict(norms))]
        done: dict[int, ShardDone] = {}
        asked = {number: self._ask(shard) for number, shard in enumerate(shards)}
        failures = 0
        while asked:
            references = {ticket.reference: number for number, ticket in asked.items()}
            there, _ = ray.wait(list(references), num_returns=1)
            number = references[there[0]]
            ticket = asked.pop(number)
            try:
                done[number] = ray.get(ticket.reference)
                self._pool.answered(ticket)
            except ray.exceptions.RayTaskError as error:
                self._pool.answered(ticket)
                raise error.cause if isinstance(error.cause, InputError) else error from None
            except ray.exceptions.RayError as error:
                failures += 1
                if failures > MOST_FAILURES * len(shards):
                    raise unusable(failures, error) from None
                self._pool.failed(ticket)
                asked[number] = self._ask(shards[number])
        return [done[number] for number in range(len(shards))]

    def _ask(self, shard: Shard) -> Ticket:
        work = Range(
            stream=self._name,
            facts=self._facts,
            place=shard.begin,
            version=self._version,
            norms=self._norms_reference,
            features=True,
            images=False,
        )
        return self._pool.submit(ShardRange(work, shard))
