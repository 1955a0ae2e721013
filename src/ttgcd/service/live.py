"""A stream that lives: its journal, its session, its rows, its edits, its events."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import torch

from ttgcd.discovery.inputs import anchors_of, task_of
from ttgcd.discovery.settings import Settings
from ttgcd.service.backlog import Backlog
from ttgcd.service.batcher import DEADLINE, Batcher
from ttgcd.service.events import Events
from ttgcd.service.journal import Entry, Journal, Placed
from ttgcd.service.learner import Learner
from ttgcd.service.rows import LiveRows
from ttgcd.service.views import Views
from ttgcd.storage.durable import write_atomic
from ttgcd.streams.decode import decode
from ttgcd.vlm.base import VLM
from ttgcd.vlm.encoder import Encoder

#: Images ready for the model that are kept until the session has seen them; others are decoded
#: again from the journal.
KEPT_PIXELS = 256 * 2**20


class Receipt:
    """Images that one request brought; ``done`` when every one of them has an answer."""

    def __init__(self, placed: Sequence[Placed]) -> None:
        self.placed = list(placed)
        self.done: Future[None] = Future()
        self._open: set[int] = set()

    def expect(self, indexes: set[int]) -> None:
        self._open = indexes
        if not indexes:
            self.done.set_result(None)

    def answered(self, index: int) -> None:
        self._open.discard(index)
        if not self._open and not self.done.done():
            self.done.set_result(None)


class LiveStream:
    """One stream on a shared model."""

    def __init__(
        self,
        folder: Path,
        name: str,
        settings: Settings,
        vlm: VLM,
        batcher: Batcher,
        on_birth: Callable[[str, int], None] | None = None,
    ) -> None:
        self.folder, self.name, self.settings, self.vlm = folder, name, settings, vlm
        self.events = Events()
        self.rows = LiveRows()
        self.batcher = batcher
        self.paused = (folder / "paused").exists()
        self._on_birth = on_birth or (lambda stream, category: None)
        self._pixels: OrderedDict[int, torch.Tensor] = OrderedDict()
        self._pixel_bytes = 0
        self.backlog = Backlog()
        self._receipts: dict[int, list[Receipt]] = {}
        self._lock = threading.Lock()
        self.task = task_of(settings, vlm, anchors_of(vlm, settings), vlm.logit_scale)
        self.journal = Journal(folder / "journal", self._committed)
        self.learner = Learner(
            folder,
            settings.make_method(),
            self.task,
            settings.batch_size,
            self.rows,
            self.events,
            self.journal.names,
            self.pixels,
            self._learned,
        )
        self.rows.make_room(len(self.journal))
        self._encoded_by = self.encoder.fingerprint
        self.views = Views(self)
        self._born = set(self.rows.categories_from(self.n_known))
        self.learner.start()
        self.learner.arrived(len(self.journal))
        self._ask(range(self.learner.next, len(self.journal)), hurry=False)

    @property
    def n_known(self) -> int:
        return len(self.task.known)

    @property
    def waiting(self) -> int:
        """Whole batches' images that the session has still to see."""
        learner = self.learner
        there = len(self.journal.names)
        return max(0, learner.ends.whole(there, learner.batch_size) - learner.next)

    # -- images arrive ------------------------------------------------------------------------

    def receive(self, entries: Sequence[Entry], wait: bool = True) -> tuple[Receipt, Future[None]]:
        """Take images: a receipt for their answers, and a future that is done when the images are
        on disk. Without ``wait`` nobody is in a hurry for the answers."""
        with self._lock:
            placed, durable = self.journal.submit(entries)
            receipt = Receipt(placed)
            self.rows.make_room(len(self.journal.names))
            if wait:
                wanted = np.array([place.index for place in placed if not place.conflict], int)
                still_open = wanted[self.rows.pending(wanted)].tolist()
                for index in still_open:
                    self._receipts.setdefault(index, []).append(receipt)
                receipt.expect(set(still_open))

        def on_disk(done: Future[None]) -> None:
            if done.exception() is None:
                self._ask([place.index for place in placed if not place.conflict], wait)

        durable.add_done_callback(on_disk)
        return receipt, durable

    def _ask(self, indexes: Sequence[int], hurry: bool) -> None:
        if len(indexes):
            self.batcher.ask(self, np.array(indexes, np.int64), hurry)

    def _committed(self, first: int, entries: Sequence[Entry]) -> None:
        with self._lock:
            for index, entry in enumerate(entries, first):
                self._keep(index, entry.pixels)
        self.learner.arrived(first + len(entries))
        self.backlog.note(self.waiting)

    def _keep(self, index: int, pixels: torch.Tensor | None) -> None:
        if pixels is not None and self._pixel_bytes + pixels.nbytes <= KEPT_PIXELS:
            self._pixels[index] = pixels
            self._pixel_bytes += pixels.nbytes

    # -- what the batcher and the learner ask -------------------------------------------------

    @property
    def encoder(self) -> Encoder:
        return self.learner.encoder

    def pixels(self, index: int) -> torch.Tensor:
        """What the model reads of an image."""
        with self._lock:
            found = self._pixels.get(index)
        if found is None:
            found = self.vlm.preprocess(decode(self.journal.read(index)))
        return found

    def encoded(self, index: np.ndarray) -> np.ndarray | None:
        """What the session has made of images whose answer it still owes; None if not of all."""
        return self.learner.encoded(index)

    def open_ones(self, index: np.ndarray, patient: bool) -> tuple[np.ndarray, np.ndarray]:
        """Of images without an answer, or with one that is out of date: those that a prediction is
        to answer, and those whose answer the session is about to give. With ``patient`` the latter
        may take as long as it likes, without it as long as batches get done; but while the method
        trains nobody waits for it."""
        index = index[self.rows.pending(index)]
        # A method may take a batch and say nothing of it yet, as in a warm-up.
        soon = (index >= self.learner.next) & (index < self.learner.due())
        stuck = not patient and time.monotonic() - self.learner.moved > DEADLINE
        if stuck or self.learner.phase is not None:
            soon &= False
        return index[~soon], index[soon]

    def predicted(self, index: np.ndarray, features: np.ndarray) -> None:
        answer = self.learner.predict(index, features)
        self.rows.predict(index, answer)
        if self.learner.next <= int(index.min()):
            self.learner.features.write(None, answer)
        self._tell(index.tolist())

    def _learned(self, begin: int, end: int) -> None:
        with self._lock:
            for index in range(begin, end):
                found = self._pixels.pop(index, None)
                if found is not None:
                    self._pixel_bytes -= found.nbytes
            # The end of a warm-up answers batches before this one, too.
            waited_for = list(self._receipts)
        self._tell(sorted({*range(begin, end), *waited_for}))
        if self.encoder.fingerprint != self._encoded_by:
            self._encoded_by = self.encoder.fingerprint
            behind = np.arange(end, len(self.journal))
            self.rows.outdate(behind)
            self._ask(behind.tolist(), hurry=False)
        for category in self.rows.categories_from(self.n_known):
            if category not in self._born:
                self._born.add(category)
                self.events.say("born", category=category)
                self._on_birth(self.name, category)

    def _tell(self, indexes: list[int]) -> None:
        here = np.array(indexes, np.int64)
        indexes = here[~self.rows.pending(here)].tolist()
        if not indexes:
            return
        with self._lock:
            receipts = [(i, receipt) for i in indexes for receipt in self._receipts.pop(i, ())]
            for index, receipt in receipts:
                receipt.answered(index)
        self.events.say(
            "answered", count=len(indexes), first=min(indexes), last=max(indexes),
            learned=self.learner.next, images=len(self.journal),
        )  # fmt: skip

    # -- its life -----------------------------------------------------------------------------

    def pause(self, paused: bool) -> None:
        """A paused stream answers no new images; what it has stays to be seen and edited."""
        marker = self.folder / "paused"
        if paused:
            write_atomic(marker, b"")
        else:
            marker.unlink(missing_ok=True)
        self.paused = paused
        self.events.say("paused", paused=paused)

    def close(self) -> None:
        self.journal.close()
        self.learner.stop()


def settings_file(settings: Settings) -> bytes:
    """What has to be known to open a stream again."""
    record = {
        "known": list(settings.names()),
        "novel": settings.novel,
        "model": settings.model,
        "templates": list(settings.templates),
        "vocabulary": settings.vocabulary,
        "method": settings.method,
        "preset": settings.preset,
        "changes": dict(settings.changes),
        "batch_size": settings.batch_size,
        "seed": settings.seed,
    }
    return json.dumps(record, indent=1, sort_keys=True).encode() + b"\n"
