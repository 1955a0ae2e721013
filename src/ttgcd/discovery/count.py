"""How many categories a run of the default method would find: the same stream, and no files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ttgcd.discovery.inputs import Inputs, make_stream, prepare
from ttgcd.discovery.settings import Settings
from ttgcd.discovery.warned import user_warnings
from ttgcd.engines.session import Session
from ttgcd.errors import InputError
from ttgcd.methods.base import Caller
from ttgcd.prototypes.curve import Curve, landmarks
from ttgcd.streams.base import Batch
from ttgcd.streams.open import Spec, open_source

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Count:
    """What a stream was counted to hold.

    Parameters
    ----------
    novel, known
        Novel categories (groups where no class is known), and the known classes beside them.
    low, high
        Between which numbers of novel categories the count leaves room.
    judged
        Whether the count is to be believed, by its range and by how far the names fit.
    samples, rejected
        How many were read, and how many could not be.
    curve
        How good each number of categories is, known ones included; None for a handful of samples.
    notes
        What a user should know.
    """

    novel: int
    known: int
    low: int
    high: int
    judged: bool
    samples: int
    rejected: int
    curve: Curve | None
    notes: tuple[str, ...]

    @property
    def hills(self) -> list[int]:
        """Numbers of categories that stand out, known ones included; several are equally honest."""
        return [] if self.curve is None else landmarks(self.curve)


def count_categories(source: Spec, settings: Settings, progress: Progress | None = None) -> Count:
    """Count as ``discover`` with these settings does, by the same answers to the same samples.

    ``progress`` hears of the phase "stream" and of what the method does within a batch.
    """
    if settings.threads is not None:
        import torch

        torch.set_num_threads(settings.threads)
    with user_warnings() as warned:
        inputs = prepare(open_source(source), settings)
        counting = _Counting(inputs, progress)
        counting.through()
        notes = (*inputs.notes, *warned())
    method = counting.session.method
    if method.seen == 0:
        raise InputError("no readable sample in the input")
    health = method.health()
    low, high = health["novel_range"]
    return Count(
        novel=health["novel"],
        known=inputs.task.n_known,
        low=low,
        high=high,
        judged=health["count_judged"],
        samples=method.seen,
        rejected=counting.rejected,
        curve=method.count_curve(),
        notes=notes,
    )


class _Counting(Caller):
    """A session whose answers nobody keeps, and whom its method turns to."""

    def __init__(self, inputs: Inputs, hears: Progress | None) -> None:
        self.stream = make_stream(inputs.source, inputs.task.vlm, inputs.settings)
        self.hears = hears
        self.rejected = 0
        self.session = Session(inputs.settings.make_method(), inputs.task, caller=self)

    def through(self) -> None:
        with self.stream:
            ahead = self.stream.independent and not self.stream.source.live
            self.session.drive(self.stream, self._batch_done, self._set_aside, ahead)

    def progress(self, phase: str, done: int, total: int) -> None:
        if self.hears is not None:
            self.hears(phase, done, total)

    def all_cores(self) -> AbstractContextManager[object]:
        return self.session.all_cores()

    def _batch_done(self, batch: Batch) -> None:
        self._set_aside()
        self.progress("stream", batch.next_position, self.stream.total)

    def _set_aside(self) -> None:
        """Samples that cannot be read are counted and not kept: memory must not grow."""
        self.rejected += len(self.stream.rejected)
        self.stream.rejected.clear()
