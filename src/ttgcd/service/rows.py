"""What every image of a stream has been answered, as columns in memory.

Some seventy bytes a row. A row has the sequence number of its last change, so that a client that
knows a number can ask for everything that came after it and never misses a revision.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from ttgcd.engines.table import resolve_aliases
from ttgcd.methods.answer import Answer, Merged
from ttgcd.prototypes.confidence import Confidence
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch

UNANSWERED = -1
_COLUMNS: dict[str, Any] = {
    "category": np.int64,  # what the method says
    "first": np.int64,  # what it said on arrival
    "shown": np.int64,  # with merges and edits
    "score": np.float32,
    "margin": np.float32,
    "novelty": np.float32,
    "batch": np.int64,
    "learned": np.bool_,  # the session has seen it; before that the answer is a prediction
    "final": np.bool_,
    "outdated": np.bool_,  # predicted by an encoder that has been replaced since
    "changed": np.int64,
    "sure": np.float32,  # how likely the answer is right; NaN: not judged yet
}
_EMPTY = {"category": UNANSWERED, "first": UNANSWERED, "shown": UNANSWERED, "sure": np.nan}
_SAID = ("category", "score", "margin", "novelty", "final")


class LiveRows:
    """A sink: the last word on every row, and when it changed."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.count = 0
        self.batches = 0
        self.version = 0
        self.aliases: dict[int, int] = {}
        #: The category under which people see one, after edits; what is not in it is itself.
        self.owners: dict[int, int] = {}
        self._rows = {name: np.zeros(0, dtype) for name, dtype in _COLUMNS.items()}
        self._widest = (0, 0.0)
        self._judge: Confidence | None = None
        # Of a process that starts later all numbers are higher: a client's cursor stays good.
        self.sequence = int(time.time() * 1000) << 10

    # -- answers ------------------------------------------------------------------------------

    def make_room(self, count: int) -> None:
        """Rows up to ``count`` have arrived."""
        with self.lock:
            have = len(self._rows["category"])
            if count > have:
                more = max(count, 2 * have, 1024) - have
                for name, column in self._rows.items():
                    empty = np.full(more, _EMPTY.get(name, 0), column.dtype)
                    self._rows[name] = np.concatenate([column, empty])
            self.count = max(self.count, count)

    def write(self, batch: Batch | None, rows: Answer) -> None:
        """What the session says: answers to a batch, and revisions of earlier rows."""
        with self.lock:
            if batch is not None:
                self.make_room(batch.start + len(batch))
                into = slice(batch.start, batch.start + len(batch))
                self._rows["batch"][into] = self.batches
                self._rows["learned"][into] = True
                self.batches += 1
            for event in rows.events:
                if isinstance(event, Merged):
                    self.aliases[event.category] = event.into
            self._say(rows.index, rows)
            if any(isinstance(event, Merged) for event in rows.events):
                self._show(np.arange(self.count))

    def predict(self, index: np.ndarray, rows: Answer) -> None:
        """What a prediction says; a row that the session has answered keeps its answer."""
        with self.lock:
            unanswered = self._rows["category"][index] == UNANSWERED
            open_rows = unanswered | ~self._rows["learned"][index]
            self._say(index[open_rows], rows.at(open_rows))

    def outdate(self, index: np.ndarray) -> None:
        """The answers to these are predictions of an encoder that has been replaced."""
        with self.lock:
            self._rows["outdated"][index] = True

    def _say(self, index: np.ndarray, rows: Answer) -> None:
        if not len(index):
            return
        # Later rows of one answer win: they are revisions of what it said before.
        last = len(index) - 1 - np.unique(index[::-1], return_index=True)[1]
        index, rows = index[last], rows.at(last)
        fresh = self._rows["first"][index] == UNANSWERED
        self._rows["first"][index[fresh]] = rows.category[fresh]
        for name in _SAID:
            self._rows[name][index] = getattr(rows, name)
        self._rows["outdated"][index] = False
        self._rows["sure"][index] = self._sure(rows.category, rows.features, inside=False)
        self._touch(index)
        self._show(index)

    # -- how sure -----------------------------------------------------------------------------

    def _sure(
        self, category: np.ndarray, features: np.ndarray | None, inside: bool, strict: bool = True
    ) -> np.ndarray | float:
        """NaN for what cannot be judged by the present facts."""
        if self._judge is None or features is None:
            return np.nan
        category = resolve_aliases(category, self.aliases)
        sure = self._judge(features, category, inside)
        return np.where(self._judge.knows(category), sure, np.nan) if strict else sure

    def judged_by(self, judge: Confidence) -> None:
        """Who judges answers from now on."""
        with self.lock:
            self._judge = judge

    def judge(self, index: np.ndarray, features: np.ndarray, all_of_them: bool = False) -> None:
        """Judge the answers of rows that are part of the stream; with ``all_of_them`` those to
        categories that the facts do not know, too, as a folder run does."""
        if not len(index):
            return
        with self.lock:
            category = self._rows["category"][index]
            sure = self._sure(category, features, inside=True, strict=not all_of_them)
            self._rows["sure"][index] = sure
            self.version += 1

    def answered(self) -> int:
        """How many rows from the first on the session has answered."""
        with self.lock:
            rows = slice(0, self.count)
            open_rows = ~self._rows["learned"][rows] | (self._rows["category"][rows] == UNANSWERED)
            return int(open_rows.argmax()) if open_rows.any() else self.count

    def unjudged(self) -> np.ndarray:
        """Rows that the session has answered and nobody has judged since, in order."""
        with self.lock:
            return np.flatnonzero(np.isnan(self._rows["sure"][: self.answered()]))

    # -- showing ------------------------------------------------------------------------------

    def _show(self, index: np.ndarray) -> None:
        category = self._rows["category"][index]
        answered = category != UNANSWERED
        index, category = index[answered], resolve_aliases(category[answered], self.aliases)
        if self.owners and len(index):
            found, at = np.unique(category, return_inverse=True)
            owner = np.array([self.owners.get(int(c), int(c)) for c in found], np.int64)
            category = owner[at.ravel()]
        self.show(index, category)

    def show(self, index: np.ndarray, category: np.ndarray) -> None:
        """Under which category people see rows, from now on."""
        with self.lock:
            differ = self._rows["shown"][index] != category
            self._rows["shown"][index] = category
            self._touch(index[differ])

    def _touch(self, index: np.ndarray) -> None:
        if len(index):
            self._rows["changed"][index] = self.sequence + 1 + np.arange(len(index))
            self.sequence += len(index)
            self.version += 1

    # -- looking ------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, np.ndarray]:
        """Copies of all columns."""
        with self.lock:
            return {name: column[: self.count].copy() for name, column in self._rows.items()}

    def column(self, name: str) -> np.ndarray:
        """A copy of one column."""
        with self.lock:
            return self._rows[name][: self.count].copy()

    def pending(self, index: np.ndarray) -> np.ndarray:
        """Whether rows have no answer, or one that is out of date."""
        with self.lock:
            unanswered = self._rows["category"][index] == UNANSWERED
            return unanswered | self._rows["outdated"][index]

    def categories_from(self, lowest: int) -> list[int]:
        """The categories that people see, from a number on."""
        with self.lock:
            shown = self._rows["shown"][: self.count]
            return [int(c) for c in np.unique(shown[shown >= lowest])]

    def at(self, index: np.ndarray) -> dict[str, list[Any]]:
        """Some rows, as plain values."""
        with self.lock:
            return {name: column[index].tolist() for name, column in self._rows.items()}

    def confidence(self, index: np.ndarray | None = None) -> np.ndarray:
        """How sure each answer is, 0 to 1: the probability that it is right, where it has been
        judged. Before that the gap between the best known and the best novel category, relative to
        the gap that 95% of the rows stay below; the margin of the text for a row whose answer came
        from the text alone."""
        with self.lock:
            rows = np.arange(self.count) if index is None else index
            novelty, score, margin, judged = (
                self._rows[name][rows] for name in ("novelty", "score", "margin", "sure")
            )
            widest = self._widest_gap()
        text_only = np.abs(novelty + score) < 1e-6
        sure = np.where(text_only | (widest <= 0), margin, np.abs(novelty) / max(widest, 1e-9))
        return np.where(np.isnan(judged), np.clip(sure, 0.0, 1.0), judged).astype(np.float32)

    def _widest_gap(self) -> float:
        """Looked up again only when the rows have grown by a twentieth."""
        at, widest = self._widest
        if not at <= self.count <= 1.05 * at + 16:
            rows = slice(0, self.count)
            gap, score = np.abs(self._rows["novelty"][rows]), self._rows["score"][rows]
            compared = np.abs(self._rows["novelty"][rows] + score) >= 1e-6
            widest = float(np.quantile(gap[compared], 0.95)) if compared.any() else 0.0
            self._widest = (self.count if widest else 0, widest)
        return widest

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        """The rows that the session has answered."""
        with self.lock:
            learned = int(self._rows["learned"][: self.count].sum())
            arrays = {name: column[:learned].copy() for name, column in self._rows.items()}
            values = {"batches": self.batches, "aliases": sorted(self.aliases.items())}
        return State(arrays, values)

    def load(self, state: State) -> None:
        with self.lock:
            count = len(state.arrays["category"])
            empty = {name: np.full(count, value) for name, value in _EMPTY.items()}
            self._rows = {  # an earlier version did not keep all of them
                name: np.array(state.arrays.get(name, empty.get(name)), dtype)
                for name, dtype in _COLUMNS.items()
            }
            self.count = count
            self.batches = state.values["batches"]
            self.aliases = {int(merged): int(into) for merged, into in state.values["aliases"]}
            self.version += 1
