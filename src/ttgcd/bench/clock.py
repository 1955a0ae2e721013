"""Time and memory of a run, batch by batch, with the warm-up apart from the stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ttgcd.bench.memory import PeakMemory
from ttgcd.methods.answer import Answer
from ttgcd.streams.base import Batch


class BatchClock:
    """Seconds that the method takes for each batch: both ends of the engine's loop.

    ``saved`` tells the seconds of work read back so far: they count where they were saved. The
    warm-up is over with the batch in which the sample number ``warmup`` comes; the paper counts it
    once and gives time and memory of a batch for the stage behind it.
    """

    def __init__(
        self, stream: Iterable[Batch], saved: Callable[[], float], warmup: int = 0
    ) -> None:
        self.stream = stream
        self.seconds: list[float] = []
        self.warmup_seconds: float | None = None
        self.warmup_bytes: int | None = None
        self._saved = saved
        self._warmup = warmup
        self._seen = 0
        self._handed = 0.0
        self._memory = PeakMemory()

    def now(self) -> float:
        return time.perf_counter() + self._saved()

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.stream:
            self._handed = self.now()
            yield batch

    def write(self, batch: Batch | None, rows: Answer) -> None:
        if batch is None:
            return
        self.seconds.append(self.now() - self._handed)
        self._seen += len(batch)
        if self._warmup and self.warmup_seconds is None and self._seen >= self._warmup:
            self.warmup_seconds = sum(self.seconds)
            self.warmup_bytes = self._memory.bytes()
            self._memory = PeakMemory()

    def steady(self) -> float:
        """Typical seconds a batch in the second half of the stream, behind any warm-up."""
        late = self.seconds[len(self.seconds) // 2 :]
        return float(np.median(late)) if late else float("nan")

    def stream_bytes(self) -> int:
        """Peak memory behind the warm-up, or of the whole run where there is none."""
        return self._memory.bytes()
