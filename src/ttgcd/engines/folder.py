"""Run a method over a stream into an output folder, so that nothing is lost when it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ttgcd.engines.checkpoint import Checkpoints
from ttgcd.engines.consumed import Consumed
from ttgcd.engines.features import FeatureFile
from ttgcd.engines.output import INPUT, OutputFolder, plain
from ttgcd.engines.rejected import RejectedFile
from ttgcd.engines.session import Session, Sink
from ttgcd.engines.signals import StopRequest, stop_requests
from ttgcd.engines.table import AssignmentTable
from ttgcd.errors import InputError
from ttgcd.methods.base import Caller, Method, Task
from ttgcd.prototypes.count import CountEstimate
from ttgcd.storage.durable import writing
from ttgcd.storage.state import State
from ttgcd.storage.state_files import load_values, save_state
from ttgcd.streams.base import Batch
from ttgcd.streams.stream import Stream

#: Features of all samples, beside the state.
FEATURES = "features.npy"
#: The text anchors among the arrays of ``state/``, beside those of the method.
ANCHORS = "task/anchors"


class StatefulSink(Sink, Protocol):
    """A sink that can be put aside and taken up again."""

    def state(self) -> State: ...

    def load(self, state: State) -> None: ...


@dataclass(frozen=True)
class FolderRun:
    """What a run into a folder has done."""

    out: Path
    samples: int
    batches: int
    rejected: int
    resumed_at: int | None = None  # stream index at which this process went on, None from the start
    already_complete: bool = False  # there was nothing left to do
    estimate: CountEstimate | None = None  # how L was found, when it was not given
    timings: dict[str, float] = field(default_factory=dict)  # of this process


def run_to_folder(
    method: Method,
    task: Task,
    make_stream: Callable[[int, int], Stream],
    out: Path,
    settings: dict[str, Any],
    *,
    sinks: Sequence[StatefulSink] = (),
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_every_seconds: float = 30.0,
    checkpoint_every_batches: int | None = None,
    finishing: Callable[[FolderRun], None] | None = None,
    say: Callable[[str], None] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    begins_with: State | None = None,
) -> FolderRun:
    """Start ``method`` on ``task`` and leave assignments, state and rejected samples in ``out``.

    ``make_stream(place, index)`` opens the stream at a place of the source's order and a stream
    index. ``settings`` is all that decides the result, as JSON without paths and times: a folder
    with other settings is refused. ``settings["input"]`` describes the input; see
    ``ttgcd.engines.consumed`` for inputs that have changed when a run goes on. ``finishing`` writes
    further files before the folder counts as finished: after a crash in it, ``resume`` calls it
    again. ``say`` is told what a user should know, ``progress`` hears of the phase "stream" and of
    what the method does within a batch. ``begins_with`` is the method's state after an earlier
    stream, from which this one goes on.

    Stopped by SIGINT, SIGTERM or SIGHUP it raises ``Interrupted`` after a checkpoint.
    """
    settings = plain(settings)
    folder = OutputFolder(out)
    folder.check(settings, resume, overwrite)
    with folder.held():
        standing = folder.check(settings, resume, overwrite)  # nobody else can change it now
        if standing == "finished" and not overwrite:
            folder.tidy()
            return _complete(folder)
        if standing != "unfinished" or overwrite:  # nothing there, or nothing to keep
            folder.begin(settings)
        run = _Run(method, task, make_stream, folder, settings, sinks, begins_with)
        run.told = say or run.told
        run.hears = progress or run.hears
        run.every_seconds = checkpoint_every_seconds
        run.every_batches = checkpoint_every_batches
        with stop_requests() as stop:
            run.stop = stop
            run.stream_through()
            stop.obey()
        done = run.leave_files()
        if finishing is not None:
            with writing(out):
                finishing(done)
        folder.complete()
    return done


def _complete(folder: OutputFolder) -> FolderRun:
    values = load_values(folder.state)
    counts = {key: values[key] for key in ("samples", "batches", "rejected")}
    return FolderRun(folder.path, **counts, already_complete=True)


class _Run(Caller):
    """One process's part of a run: what drives the session, and whom the method turns to."""

    stop: StopRequest
    every_seconds: float
    every_batches: int | None

    def __init__(
        self,
        method: Method,
        task: Task,
        make_stream: Callable[[int, int], Stream],
        folder: OutputFolder,
        settings: dict[str, Any],
        sinks: Sequence[StatefulSink],
        earlier: State | None,
    ) -> None:
        self.method = method
        self.task = task
        self.make_stream = make_stream
        self.folder = folder
        self.settings = settings
        self.told: Callable[[str], None] = lambda line: None
        self.hears: Callable[[str, int, int], None] = lambda phase, done, total: None
        self.earlier = earlier
        self.first = 0 if earlier is None else int(earlier.values["seen"])
        self.table = AssignmentTable(folder.progress / "parts", task.known)
        self.features = FeatureFile(folder.progress / "features.npy")
        self.sinks: tuple[StatefulSink, ...] = (self.table, self.features, *sinks)
        self.rejected = RejectedFile(folder.progress / "rejected.csv")
        self.checkpoints = Checkpoints(folder.progress)
        self.resumed_at: int | None = None
        self.timings: dict[str, float] = {}
        self._place = 0  # where reading goes on after the last whole batch

    def progress(self, phase: str, done: int, total: int) -> None:
        self.hears(phase, done, total)

    def say(self, text: str) -> None:
        self.told(text)

    def all_cores(self) -> AbstractContextManager[object]:
        return self.session.all_cores()

    # -- the stream ---------------------------------------------------------------------------

    def stream_through(self) -> None:
        self.session = Session(
            self.method,
            self.task,
            self.sinks,
            caller=self,
            store=self.features,
            begins_with=self.earlier,
        )
        self._go_on()
        self._saved_at, self._saved_batches = time.monotonic(), self.table.batches
        with self.stream:
            ahead = self.stream.independent and not self.stream.source.live
            self.session.drive(self.stream, self._batch_done, self._all_done, ahead)
        self.timings = self.session.seconds

    def _all_done(self) -> None:
        self._take_rejected(self.stream.total)
        self._place = self.stream.total
        self.consumed.advance(self._place)
        self._checkpoint(self.method.state_dict())
        self.stop.obey()

    def _batch_done(self, batch: Batch) -> None:
        self._take_rejected(batch.next_position)
        self._place = batch.next_position
        self.consumed.advance(self._place)
        self.progress("stream", self._place, self.stream.total)
        if self.stop or self._due():
            self._checkpoint(self.method.state_dict())
        self.stop.obey()

    def _take_rejected(self, end: int) -> None:
        """Move those before a place to disk: memory must not grow with the stream."""
        aside = self.stream.rejected
        self.rejected.add([sample for sample in aside if sample.place < end])
        aside[:] = [sample for sample in aside if sample.place >= end]

    # -- checkpoints --------------------------------------------------------------------------

    def _due(self) -> bool:
        batches = self.table.batches - self._saved_batches
        if self.every_batches is not None and batches >= self.every_batches:
            return True
        return time.monotonic() - self._saved_at >= self.every_seconds

    def checkpoint(self, state: State) -> None:
        """The method has got on within a batch (an epoch of the warm-up)."""
        self._checkpoint(state, within_batch=True)
        self.stop.obey()

    def _checkpoint(self, state: State, within_batch: bool = False) -> None:
        """Keep the method's state with what the sinks had when the method was there.

        A method in its warm-up reads the stream again from the start; then the sinks begin anew.
        Between batches such a method has nothing to keep, and what it had kept of its epochs is
        still to be used: that checkpoint stays.
        """
        seen = state.values["seen"]
        if seen == 0 and not within_batch:
            return
        states = {"method": state, "session": self.session.state()}
        values: dict[str, Any] = {"index": seen, "place": 0, "consumed": self.consumed.values()}
        if seen == self.first + self.table.samples:
            values["place"] = self._place
            values["rejected"] = self.rejected.values()
            states |= {f"sink {number}": sink.state() for number, sink in enumerate(self.sinks)}
        elif seen != 0:
            return  # the method cannot go on from here
        self.checkpoints.save(states, values)
        self._saved_at, self._saved_batches = time.monotonic(), self.table.batches

    def _go_on(self) -> None:
        """Take up the last checkpoint, if there is one that fits the input."""
        before = self.folder.settings()
        found = self.checkpoints.latest()
        states, values = found or ({}, {"index": self.first, "place": 0})
        try:
            self.stream = self.make_stream(values["place"], values["index"])
        except InputError as error:
            if values["place"] == 0:
                raise
            raise self._changed(str(error)) from None
        self.consumed = Consumed(self.stream)
        if "rejected" in values:
            self.rejected.load(values["rejected"])
            for number, sink in enumerate(self.sinks):
                sink.load(states[f"sink {number}"])
        else:
            self.rejected.begin()
            self.table.remove_parts()
            self.features.path.unlink(missing_ok=True)
        if found and self.consumed.matches(values["consumed"]):
            self.session.load(states["method"], states["session"])
            self.resumed_at = values["index"]
        elif found and values["index"] > 0:
            answered, rejected = self.table.answered_ids(), self.rejected.ids()
            raise self._changed(self.consumed.difference(values["consumed"], answered, rejected))
        elif found:
            self.say("the input has changed since the warm-up began: it begins again")
        if values["place"] == 0:
            self.consumed = Consumed(self.stream)  # it is read again from the start
        self._place = values["place"]
        if before.get(INPUT) != self.settings.get(INPUT):
            if self.resumed_at:
                self.say("the input has changed after the samples already read: going on with it")
            self.folder.keep_settings(self.settings)

    def _changed(self, how: str) -> InputError:
        return InputError(
            f"cannot go on in {str(self.folder.path)!r}: the input has changed ({how}). "
            "Restore it, or start again with `overwrite=True`"
        )

    # -- the end ------------------------------------------------------------------------------

    def leave_files(self) -> FolderRun:
        """Write the final files; all of it can be done again."""
        out = self.folder.path
        counts: dict[str, Any] = {
            "samples": self.table.samples,
            "batches": self.table.batches,
            "rejected": self.rejected.count,
        }
        self.rejected.finish(out / "rejected.csv")
        if counts["samples"] == 0:
            raise InputError("no readable sample in the input: rejected.csv has the reasons")
        self.table.finish(out / "assignments.parquet")
        self.features.finish(self.folder.state / FEATURES)
        state = self.method.state_dict()
        values = {**state.values, **counts, "settings": self.settings}
        with writing(out):
            # Whoever goes on from here needs the anchors, also of methods that do not keep them.
            arrays = {**state.arrays, ANCHORS: self.task.anchors.astype(np.float32)}
            save_state(self.folder.state, State(arrays, values))
        return FolderRun(
            out,
            **counts,
            resumed_at=self.resumed_at,
            timings=self.timings,
            estimate=self.session.estimate,
        )
