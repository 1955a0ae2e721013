"""Later words on rows that are on disk already: kept in files, applied at the end."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.storage.durable import write_atomic, writing
from ttgcd.storage.state import State

_ROW = np.dtype(
    [
        ("index", "<i8"),
        ("category", "<i8"),
        ("first", "<i8"),  # what was said first of the row, in this file
        ("score", "<f4"),
        ("margin", "<f4"),
        ("novelty", "<f4"),
        ("final", "?"),
    ]
)
#: Revisions that wait in memory before they become a file.
WAITING = 65_536


class RevisionLog:
    """Revised rows in the order in which they were said; the last word on a row counts."""

    def __init__(self, folder: Path, waiting: int = WAITING) -> None:
        self.folder = folder
        self._most = waiting
        self._files: list[str] = []  # sha256 of each
        self._reach: list[tuple[int, int]] = []  # first and last index in each
        self._waiting: list[np.ndarray] = []
        self._count = 0

    def add(self, rows: Answer) -> None:
        if not len(rows):
            return
        said = np.empty(len(rows), _ROW)
        for name in _ROW.names or ():
            said[name] = getattr(rows, "category" if name == "first" else name)
        self._waiting.append(said)
        self._count += len(said)
        if self._count >= self._most:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        buffer = io.BytesIO()
        said = _last_words(np.concatenate(self._waiting))
        np.save(buffer, said)
        data = buffer.getvalue()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path(len(self._files)), data)
        self._files.append(hashlib.sha256(data).hexdigest())
        self._reach.append(_reach(said))
        self._waiting, self._count = [], 0

    def _path(self, number: int) -> Path:
        return self.folder / f"revisions-{number:06d}.npy"

    def between(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """What was said about the rows from ``start`` to before ``stop``, oldest first."""
        self._flush()
        for number, (first, last) in enumerate(self._reach):
            if last < start or first >= stop:
                continue
            said = np.load(self._path(number), mmap_mode="r", allow_pickle=False)
            begin, end = np.searchsorted(said["index"], [start, stop])
            yield np.array(said[begin:end])

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        self._flush()
        return State({}, {"revisions": list(self._files)})

    def load(self, state: State) -> None:
        """Go on from ``state``; files written after it are removed."""
        self._files = list(state.values["revisions"])
        self._waiting, self._count, self._reach = [], 0, []
        for number, digest in enumerate(self._files):
            path = self._path(number)
            try:
                data = path.read_bytes()
            except OSError as error:
                raise InputError(
                    f"cannot read {str(path)!r}: {error.strerror}. "
                    "Start again with `overwrite=True`"
                ) from None
            if hashlib.sha256(data).hexdigest() != digest:
                raise InputError(f"{str(path)!r} is damaged. Start again with `overwrite=True`")
            self._reach.append(_reach(np.load(io.BytesIO(data), allow_pickle=False)))
        self.remove(len(self._files))

    def remove(self, first: int = 0) -> None:
        """Remove the files numbered ``first`` and above."""
        keep = {self._path(number).name for number in range(first)}
        if self.folder.exists():
            with writing(self.folder):
                for name in sorted(os.listdir(self.folder)):
                    if name.startswith("revisions-") and name not in keep:
                        (self.folder / name).unlink()


def _reach(said: np.ndarray) -> tuple[int, int]:
    return int(said["index"][0]), int(said["index"][-1])


def _last_words(said: np.ndarray) -> np.ndarray:
    """One row an index, the last that was said, ordered by index."""
    if (said["index"][1:] > said["index"][:-1]).all():
        return said
    order = np.argsort(said["index"], kind="stable")
    ordered = said[order]
    last = np.append(ordered["index"][1:] != ordered["index"][:-1], True)
    kept = ordered[last]
    kept["first"] = ordered["category"][np.append(True, last[:-1])]
    return kept
