"""Run a method over a stream in this process: encode, answer, hand the answers to the sinks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from threadpoolctl import ThreadpoolController

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task
from ttgcd.streams.base import Batch


class Sink(Protocol):
    """Takes answers as they come. ``batch`` is None for revisions made when the stream ends."""

    def write(self, batch: Batch | None, rows: Answer) -> None: ...


@dataclass
class RunResult:
    """What a method said about every sample, by stream index."""

    ids: list[str]
    positions: np.ndarray
    category: np.ndarray
    score: np.ndarray
    margin: np.ndarray
    novelty: np.ndarray
    batches: int
    timings: dict[str, float] = field(default_factory=dict)


class Collector:
    """Keeps the latest answer for every sample in memory."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._positions: list[int] = []
        self._answers: list[Answer] = []
        self._batches = 0

    def write(self, batch: Batch | None, rows: Answer) -> None:
        if batch is not None:
            self._ids.extend(batch.ids)
            self._positions.extend(batch.positions)
            self._batches += 1
        self._answers.append(rows)

    def result(self) -> RunResult:
        rows = Answer.concat([_without_features(a) for a in self._answers])
        columns: dict[str, Any] = {}
        for name in ("category", "score", "margin", "novelty"):
            given = getattr(rows, name)
            columns[name] = np.zeros(len(self._ids), given.dtype)
            columns[name][rows.index] = given  # later rows win: they are revisions
        return RunResult(
            ids=self._ids,
            positions=np.asarray(self._positions, np.int64),
            batches=self._batches,
            **columns,
        )


def _without_features(rows: Answer) -> Answer:
    names = ("index", "category", "score", "margin", "final", "novelty")
    return Answer(**{name: getattr(rows, name) for name in names})


def check_finite(batch: Batch | None, rows: Answer) -> None:
    """Stop at the batch where NaN or infinite values arise, before any sink has seen them."""
    bad = ~(np.isfinite(rows.score) & np.isfinite(rows.margin))
    if rows.features is not None:
        bad |= ~np.isfinite(rows.features).all(axis=1)
    if not bad.any():
        return
    where = "when the stream ended"
    if batch is not None:
        offsets = rows.index[bad] - batch.start
        ids = [batch.ids[at] for at in offsets if 0 <= at < len(batch)]
        named = ", ".join(repr(name) for name in ids[:3]) + (", ..." if len(ids) > 3 else "")
        where = f"in the batch of samples {batch.start} to {batch.start + len(batch) - 1}"
        where += f" ({named})" if ids else ""
    raise InputError(
        f"NaN or infinite features or scores for {int(bad.sum())} samples {where}: the model's "
        "weights may be damaged, or its number format may overflow (use float32)"
    )


def drive(
    method: Method,
    stream: Iterable[Batch],
    sinks: Sequence[Sink],
    after_batch: Callable[[Batch], None] | None = None,
) -> dict[str, float]:
    """The loop itself: every batch to the method, every answer to every sink.

    The method must have been started. Returns seconds spent waiting for decoded input, in the
    method, and in the sinks.
    """
    seconds = {"input": 0.0, "method": 0.0, "sinks": 0.0}

    def timed(phase: str, since: float) -> float:
        now = time.perf_counter()
        seconds[phase] += now - since
        return now

    pools = ThreadpoolController()
    clock = time.perf_counter()
    for batch in stream:
        clock = timed("input", clock)
        # The prototypes' products are small: BLAS threads that wait for the next one would take
        # the encoder's cores (benchmarks/streaming.py). It keeps its own threads.
        with pools.limit(limits=1, user_api="blas"):
            rows = method.observe(batch)
        clock = timed("method", clock)
        check_finite(batch, rows)
        for sink in sinks:
            sink.write(batch, rows)
        if after_batch is not None:
            after_batch(batch)
        clock = timed("sinks", clock)
    clock = timed("input", clock)
    rows = method.finish()
    clock = timed("method", clock)
    check_finite(None, rows)
    for sink in sinks:
        sink.write(None, rows)
    timed("sinks", clock)
    return seconds


def run(
    method: Method, task: Task, stream: Iterable[Batch], sinks: Sequence[Sink] = ()
) -> RunResult:
    """Start ``method`` on ``task``, run it over ``stream`` and collect its answers in memory."""
    method.start(task)
    collector = Collector()
    timings = drive(method, stream, [collector, *sinks])
    result = collector.result()
    result.timings = timings
    return result
