"""Who pushes a stream's images through its session, batch by batch, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ttgcd.engines.ahead import depth, only_features
from ttgcd.engines.checkpoint import Checkpoints
from ttgcd.engines.features import FeatureFile
from ttgcd.engines.foretold import AnswersByFit
from ttgcd.engines.session import Session
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Caller, Method, Task
from ttgcd.methods.zero_shot import zero_shot_rows
from ttgcd.service.early import EarlyBatches
from ttgcd.service.ends import Ends
from ttgcd.service.events import Events
from ttgcd.service.rows import LiveRows
from ttgcd.service.sureness import Sureness
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch
from ttgcd.vlm.encoder import Encoder

#: How long a prediction waits for a batch in hand before it answers from what was known before.
PATIENCE = 0.1
#: So many features of images that the method has not answered are kept for predictions.
OWED = 4096


class Stopped(Exception):
    """The service stops while a method is busy; it goes on from its last checkpoint."""


class Learner(Caller):
    """Learns from the images ``read(index)`` as soon as a whole batch of them is there.

    The session's batch size decides the answers: however images arrive, batch b holds the images
    b B to (b + 1) B - 1 of the journal, as in a folder run. After a crash the journal is read again
    from the last checkpoint on. Where somebody said that the stream is over (``ends``), the last
    batch is a short one and the method makes its last revisions; batches are counted from there
    on, as in a run that goes on from a finished one.
    """

    replays = True

    def __init__(
        self,
        folder: Path,
        method: Method,
        task: Task,
        batch_size: int,
        rows: LiveRows,
        events: Events,
        names: Sequence[str],
        read: Callable[[int], torch.Tensor],
        answered: Callable[[int, int], None],
        checkpoint_seconds: float = 15.0,
    ) -> None:
        self.rows, self.events, self.batch_size = rows, events, batch_size
        self.method, self.task = method, task
        self.features = FeatureFile(folder / "features.npy")
        self.phase: dict[str, Any] | None = None  # what the method is busy with, if it says
        self.failed: str | None = None
        self.next = 0  # the first image that has not been learned from
        self.there = 0  # images on disk
        self.moved = 0.0  # when the last batch was learned from (monotonic)
        self.ends = Ends(folder / "ends.json")
        self.ended = 0  # ends that the method has come to
        self._names, self._read, self._answered = names, read, answered
        self._checkpoints = Checkpoints(folder)
        self._every, self._saved = checkpoint_seconds, time.monotonic()
        self._lock = threading.Lock()  # whoever holds it may use the method
        self._wake = threading.Condition()
        self._stop = False
        self._known_prototypes: np.ndarray | None = None
        self._prototypes_of: int | None = None  # the fit that they are of
        self._taken_to = 0  # behind the batch that the method is busy with
        self._early, self._most_early = EarlyBatches(self._encoded), 1
        self._owed: dict[int, np.ndarray] = {}  # features of batches that are not answered yet
        self.session = Session(
            method, task, (rows, self.features), batch_size=batch_size, caller=self,
            store=self.features,
        )  # fmt: skip
        self._sureness = Sureness(self)
        self._go_on()
        self._thread = threading.Thread(target=self._run, name="ttgcd-learn", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # -- learning -----------------------------------------------------------------------------

    def arrived(self, there: int) -> None:
        """So many images are on disk."""
        with self._wake:
            self.there = there
            self._wake.notify()
        if self._taken_to > self.next:  # the method is busy
            self._encode_ahead()

    def due(self) -> int:
        """Images up to here are in whole batches: the session will see them without more."""
        return 0 if self.failed is not None else self.ends.whole(self.there, self.batch_size)

    @property
    def finished(self) -> int:
        """Images up to the last end that the method has come to."""
        return self.ends[self.ended - 1] if self.ended else 0

    def finish(self) -> None:
        """The stream is over, for now: once all that is there has been learned from, the method
        makes its last revisions (event ``finished``). Kept on disk, like an image."""
        with self._wake:
            self.ends.add(self.there)
            self._wake.notify()

    def _run(self) -> None:
        try:
            while True:
                with self._wake:
                    self._wake.wait_for(
                        lambda: self._stop or self.next < self.due() or self._at_end(self.next)
                    )
                    if self._stop:
                        return
                self._learn()
        except Stopped:
            return
        except Exception as error:  # the stream goes on answering without learning
            self.failed = f"{type(error).__name__}: {error}"
            self.events.say("failed", error=self.failed)

    @property
    def warmed_up(self) -> bool:
        """Whether the method answers by what it has learned, not from the texts alone."""
        return bool(getattr(self.method, "begun", True))

    def _at_end(self, index: int) -> bool:
        """Whether the method has come to the next end of the stream."""
        return len(self.ends) > self.ended and self.ends[self.ended] == index

    def _learn(self) -> None:
        begin, end = self.next, self.next + self.batch_size
        if len(self.ends) > self.ended:
            end = min(end, self.ends[self.ended])
        over = self._at_end(end)
        batch = self._taken(begin, end) if end > begin else None
        self._taken_to = end
        if batch is not None:
            self._most_early = depth(batch.images)
        self._encode_ahead()
        with self._lock:
            if batch is not None:
                self.session.push(batch)
            if over:
                self.session.finish()
            self._keep_prototypes()
        if batch is not None:
            self._owe(batch)
        self.next, self.ended, self.phase = end, self.ended + over, None
        self.moved = time.monotonic()
        if over:
            self._sureness.settle()
        elif self.warmed_up:
            self._sureness.look()
        self._answered(0 if over else begin, end)
        if over or time.monotonic() - self._saved >= self._every:
            self.save()
        if over:
            self.events.say("finished", images=end)

    def _keep_prototypes(self) -> None:
        """For predictions while the method is busy. Those of a fit stand as long as it does."""
        behind = self.method.behind
        fit = behind.fit if isinstance(behind, AnswersByFit) else None
        if fit is None or fit != self._prototypes_of:
            self._known_prototypes, self._prototypes_of = self.method.prototypes(), fit

    def _batch(self, begin: int, end: int) -> Batch:
        return Batch(
            ids=tuple(self._names[begin:end]),
            start=begin,
            positions=tuple(range(begin, end)),
            next_position=end,
            images=torch.stack([self._read(index) for index in range(begin, end)]),
        )

    def _encoded(self, begin: int, end: int, encoder: Encoder) -> Batch:
        batch = self._batch(begin, end)
        assert batch.images is not None
        return replace(batch, features=encoder(batch.images))

    def _taken(self, begin: int, end: int) -> Batch:
        """The next batch; encoded, where features are all that the method wants."""
        if not only_features(self.method):
            return self._batch(begin, end)
        early = self._early.take(begin, end, self.encoder)
        return self._encoded(begin, end, self.encoder) if early is None else early

    def _encode_ahead(self) -> None:
        """The batches behind the one that the method is busy with, as far as they are whole."""
        if only_features(self.method):
            begin, end = self._taken_to, self.due()
            self._early.begin(begin, end, self.batch_size, self._most_early, self.encoder)

    def _owe(self, batch: Batch) -> None:
        """A method may take batches and answer them later, all at once."""
        owes = bool(self.rows.pending(np.arange(batch.start, batch.start + len(batch))).any())
        if not owes or batch.features is None or len(self._owed) >= OWED:
            self._owed = {}
        else:
            self._owed = self._owed | dict(enumerate(batch.features, batch.start))

    def encoded(self, index: np.ndarray) -> np.ndarray | None:
        """The features of images that the method has seen and not answered, if of all of them."""
        owed = self._owed
        found = [owed[at] for at in index.tolist() if at in owed]
        return np.stack(found) if len(found) == len(index) else None

    # -- predicting ---------------------------------------------------------------------------

    @property
    def encoder(self) -> Encoder:
        encoder = self.session.encoder
        assert encoder is not None
        return encoder

    def predict(self, index: np.ndarray, features: np.ndarray) -> Answer:
        """Answers without learning. While a batch keeps the method busy for long, as the training
        at the end of the warm-up does, they come from the prototypes of before."""
        batch = Batch(
            ids=("",) * len(index),
            start=0,
            positions=tuple(range(len(index))),
            next_position=len(index),
            features=features,
        )
        if self._lock.acquire(timeout=0 if self.phase else PATIENCE):
            try:
                answer = self.session.predict(batch)
            finally:
                self._lock.release()
        else:
            answer = self._from_before(features)
        return replace(answer, index=index, final=np.zeros(len(index), bool), features=features)

    def _from_before(self, features: np.ndarray) -> Answer:
        text = zero_shot_rows(self.task, 0, features, final=False)
        prototypes = self._known_prototypes
        if prototypes is None or not prototypes.any():
            return text
        cosines = features @ prototypes.T
        cosines[:, ~prototypes.any(axis=1)] = -np.inf
        return replace(text, category=cosines.argmax(axis=1), score=cosines.max(axis=1))

    def inspect(self, look: Callable[[Method], Any], patience: float = PATIENCE) -> Any | None:
        """What ``look`` says of the method, None while it is busy."""
        if not self._lock.acquire(timeout=0 if self.phase else patience):
            return None
        try:
            return look(self.method)
        finally:
            self._lock.release()

    # -- what the method says, and memory -----------------------------------------------------

    def progress(self, phase: str, done: int, total: int) -> None:
        self.phase = {"phase": phase, "done": done, "total": total}
        self.events.say("progress", phase=phase, done=done, total=total)

    def checkpoint(self, state: State) -> None:
        """The method has got on within a batch (an epoch of the warm-up)."""
        if state.values["seen"] == 0:
            states = {"method": state, "session": self.session.state()}
            self._checkpoints.save(states, {"index": 0})
        if self._stop:
            raise Stopped

    def save(self) -> None:
        """Keep what is needed to go on from the last batch."""
        with self._lock:
            state = self.method.state_dict()
            if state.values["seen"] != self.next or not self.next:
                return  # a buffer that fills is read again from its start
            states = {
                "method": state,
                "session": self.session.state(),
                "rows": self.rows.state(),
                "features": self.features.state(),
            }
        self._checkpoints.save(states, {"index": self.next, "ended": self.ended})
        self._saved = time.monotonic()

    def _go_on(self) -> None:
        found = self._checkpoints.latest()
        if found is None:
            return
        states, values = found
        self.session.load(states["method"], states["session"])
        if values["index"]:
            self.rows.load(states["rows"])
            self.features.load(states["features"])
            self.next, self.ended = values["index"], values["ended"]
        self._keep_prototypes()

    def stop(self) -> None:
        """Finish the batch in hand, keep the state."""
        with self._wake:
            self._stop = True
            self._wake.notify()
        self._thread.join()
        self._early.stop()
        self._sureness.stop()
        if self.failed is None:
            self.save()
