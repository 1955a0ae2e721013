"""Run a method over a stream in this process and keep its answers in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ttgcd.engines.features import FeaturesInMemory
from ttgcd.engines.session import Session, Sink
from ttgcd.engines.table import resolve_aliases
from ttgcd.methods.answer import Answer, Merged
from ttgcd.methods.base import Caller, Method, Task
from ttgcd.streams.base import Batch


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
            self._batches += batch.steps
        self._answers.append(rows)

    def result(self) -> RunResult:
        rows = Answer.concat([_without_features(a) for a in self._answers])
        columns: dict[str, Any] = {}
        for name in ("category", "score", "margin", "novelty"):
            given = getattr(rows, name)
            columns[name] = np.zeros(len(self._ids), given.dtype)
            columns[name][rows.index] = given  # later rows win: they are revisions
        aliases = {e.category: e.into for e in rows.events if isinstance(e, Merged)}
        columns["category"] = resolve_aliases(columns["category"], aliases)
        return RunResult(
            ids=self._ids,
            positions=np.asarray(self._positions, np.int64),
            batches=self._batches,
            **columns,
        )


def _without_features(rows: Answer) -> Answer:
    return replace(rows, features=None, norms=None)


def run(
    method: Method,
    task: Task,
    stream: Iterable[Batch],
    sinks: Sequence[Sink] = (),
    caller: Caller | None = None,
) -> RunResult:
    """Run ``method`` on ``task`` over ``stream`` and collect its answers in memory."""
    collector, features = Collector(), FeaturesInMemory()
    session = Session(method, task, [collector, features, *sinks], caller=caller, store=features)
    session.drive(stream)
    result = collector.result()
    result.timings = session.seconds
    return result
