"""What people see of a stream: categories and rows with their edits, and the run's folder.

Edits go through ``ttgcd.discovery.edits``: the stream is put down as the folder of a finished run,
which ``ttgcd edit``, ``ttgcd export`` and ``ttgcd look`` understand as well, and edited there. What
has arrived since is shown with the log replayed on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.categories import describe_categories
from ttgcd.discovery.edits import Edit, EditedFolder, apply
from ttgcd.discovery.edits.log import NAME, EditLog, active
from ttgcd.engines.table import resolve_aliases
from ttgcd.methods.base import Method, named_category
from ttgcd.service.names import Names
from ttgcd.service.rows import UNANSWERED
from ttgcd.service.run_folder import assignments, write_run

if TYPE_CHECKING:
    from ttgcd.service.live import LiveStream

EXEMPLARS = 12
#: A view of so many rows that takes longer than this is not made for every look: it may then be
#: five times as old as it takes to make one. The first view of a short stream is slow as well, for
#: it imports a library.
SLOW_SECONDS, MANY_ROWS = 0.5, 5_000


@dataclass(frozen=True)
class View:
    """Categories and rows at one moment."""

    categories: list[dict[str, Any]] = field(default_factory=list)
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    unapplied: dict[int, str] = field(default_factory=dict)
    #: The number of the last change of a row that is seen here.
    cursor: int = 0

    def __len__(self) -> int:
        return len(self.columns.get("shown", ()))

    @cached_property
    def by_id(self) -> dict[int, dict[str, Any]]:
        return {record["id"]: record for record in self.categories}


class Views:
    """The present view of a stream, made when somebody looks."""

    def __init__(self, stream: LiveStream) -> None:
        self._stream = stream
        self._run = stream.folder / "run"
        self._lock = threading.RLock()
        self._log = EditLog(self._run / NAME)
        self._view = View()
        self._of: tuple[int, int, int] = (-1, -1, -1)
        self._made, self._cost = 0.0, 0.0
        self._names = Names(stream)
        self._records: list[dict[str, Any]] = []
        self.now(fresh=True)

    # -- looking ------------------------------------------------------------------------------

    @property
    def latest(self) -> View:
        """The view that was made last: its names are those of the latest edit, its rows may be
        old. For answers, which come by the hundred a second."""
        return self._view

    def now(self, fresh: bool = False) -> View:
        """What there is to see; of a very long stream perhaps a little old, unless ``fresh``."""
        key = (self._stream.rows.version, self._names.version, len(self._log.edits))
        age = time.monotonic() - self._made
        slow = len(self._view) >= MANY_ROWS and self._cost > SLOW_SECONDS and age < 5 * self._cost
        if key == self._of or (slow and not fresh):
            return self._view
        with self._lock:
            began = time.monotonic()
            cursor = self._stream.rows.sequence
            self._view, self._of = replace(self._make(), cursor=cursor), key
            self._made = time.monotonic()
            self._cost = self._made - began
            return self._view

    def _make(self) -> View:
        columns, records = self._answered(), self._described()
        if not active(self._log.edits):
            self._stream.rows.owners = {}
            shown = resolve_aliases(columns["category"], self._stream.rows.aliases)
            self._show(columns, shown)
            return View(records, columns, tuple(self._log.edits))
        table = assignments(self._stream, columns)
        after = apply(self._log.edits, table, records, self._features(len(columns["category"])))
        return self._edited(columns, after.categories, after.assignments, after.unapplied)

    def _edited(
        self,
        columns: dict[str, np.ndarray],
        categories: list[dict[str, Any]],
        table: Any,
        unapplied: dict[int, str],
    ) -> View:
        self._stream.rows.owners = _owners(categories)
        columns["confidence"] = table.column("confidence").to_numpy()
        self._show(columns, table.column("category").to_numpy().astype(np.int64))
        return View(categories, columns, tuple(self._log.edits), unapplied)

    def _show(self, columns: dict[str, np.ndarray], shown: np.ndarray) -> None:
        columns["shown"] = shown
        self._stream.rows.show(np.arange(len(shown)), shown)

    def _answered(self) -> dict[str, np.ndarray]:
        """The columns up to the first image without an answer."""
        with self._stream.rows.lock:
            columns = self._stream.rows.snapshot()
            columns["confidence"] = self._stream.rows.confidence()
        none_yet = np.flatnonzero(columns["category"] == UNANSWERED)
        if len(none_yet):
            columns = {name: column[: none_yet[0]] for name, column in columns.items()}
        return columns

    def _described(self) -> list[dict[str, Any]]:
        """The method's own categories with counts, examples and suggested names."""
        stream = self._stream
        rows = stream.rows
        columns = self._answered()
        category = resolve_aliases(columns["category"], rows.aliases)
        highest = max(stream.n_known, int(category.max(initial=0)) + 1)
        counts = np.bincount(category, minlength=highest).tolist()
        exemplars = typical(category, columns["score"], len(counts))
        names = stream.journal.names
        ids = [[names[row] for row in rows_] for rows_ in exemplars]

        def look(method: Method) -> list[dict[str, Any]]:
            return describe_categories(method, stream.task, counts, ids, self._names.latest())

        found = stream.learner.inspect(look)
        if found is not None:
            self._records = found
        else:
            for number, count in enumerate(counts):
                if number >= len(self._records):
                    self._records.append(named_category(stream.task.known, number).as_json())
                self._records[number] |= {"count": count, "exemplars": ids[number]}
        return [dict(record) for record in self._records]

    def _features(self, rows: int) -> np.ndarray | None:
        file = self._stream.learner.features
        return file.read(0, rows) if rows and file.count >= rows else None

    # -- editing ------------------------------------------------------------------------------

    def edit(self, *edits: Edit) -> View:
        """Make edits, all or none; an ``InputError`` says why not."""
        return self._change(lambda folder: folder.edit(*edits))

    def undo(self, target: int | None) -> View:
        return self._change(lambda folder: folder.undo(target))

    def redo(self, target: int | None) -> View:
        return self._change(lambda folder: folder.redo(target))

    def halves(self, category: int) -> tuple[str, ...]:
        """The images of one half of a category, by what they look like."""
        with self._lock:
            self.put_down()
            return EditedFolder(self._run).in_two(category).images

    def _change(self, change: Callable[[EditedFolder], object]) -> View:
        with self._lock:
            self.put_down()
            folder = EditedFolder(self._run)
            try:
                change(folder)
            finally:
                self._log = EditLog(self._run / NAME)
            view = self.now(fresh=True)
        last = self._log.edits[-1]
        self._stream.events.say("edited", number=last.number, op=last.op, text=last.text())
        return view

    def put_down(self) -> None:
        """Write the stream as the folder of a finished run, edits on top."""
        with self._lock:
            columns, records = self._answered(), self._described()
            write_run(self._stream, self._run, columns, records)
            EditedFolder(self._run).adopt()


def typical(category: np.ndarray, score: np.ndarray, count: int) -> list[list[int]]:
    """The rows with the highest scores of each category."""
    order = np.lexsort((-score, category))
    starts = np.searchsorted(category[order], np.arange(count + 1))
    return [order[begin : min(end, begin + EXEMPLARS)].tolist() for begin, end in pairwise(starts)]


def _owners(categories: Sequence[dict[str, Any]]) -> dict[int, int]:
    """Where merges lead, category by category."""
    into = {c["id"]: c["merged_into"] for c in categories if c.get("merged_into") is not None}
    owners = {}
    for category in into:
        end, steps = category, 0
        while end in into and steps <= len(into):
            end, steps = into[end], steps + 1
        owners[category] = end
    return owners
