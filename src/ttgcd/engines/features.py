"""The features of all samples, in stream order: half precision, on disk or in memory.

A method that answers again needs them, and so do search, maps and corrections later on.
"""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.storage.durable import sync_folder, writing
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch

_DTYPE = np.dtype("<f2")
_HEADER = 128  # bytes in front of the rows, enough for any shape
_AT_ONCE = 2048  # rows that are written together
_CACHED = 256  # rows that are normalised at once: few enough for a processor's cache


class FeaturesInMemory:
    """A sink that keeps the latest features of every sample."""

    def __init__(self) -> None:
        self._rows: np.ndarray | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def write(self, batch: Batch | None, rows: Answer) -> None:
        if rows.features is None or not len(rows):
            return
        end = int(rows.index.max()) + 1
        if self._rows is None:
            self._rows = np.zeros((0, rows.features.shape[1]), _DTYPE)
        if end > len(self._rows):
            grown = np.zeros((max(end, 2 * len(self._rows)), self._rows.shape[1]), _DTYPE)
            grown[: self._count] = self._rows[: self._count]
            self._rows = grown
        self._rows[rows.index] = rows.features
        self._count = max(self._count, end)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Unit features of a range of samples."""
        assert self._rows is not None
        return _unit(self._rows[start : min(stop, self._count)])

    def array(self) -> np.ndarray:
        """All of them, half precision (n, d)."""
        return np.zeros((0, 0), _DTYPE) if self._rows is None else self._rows[: self._count]


class FeatureFile:
    """A sink that keeps the latest features of every sample in a file that grows row by row.

    ``finish`` turns it into an ordinary ``.npy`` file. What was written after a checkpoint is
    written again, with the same content, when a run goes on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.dim: int | None = None
        self._held: list[np.ndarray] = []  # consecutive rows that are not in the file yet
        self._first = self._next = 0  # the stream indexes that they begin and end at
        self._lock = threading.RLock()  # earlier rows are read while later ones are written
        # Making features half as precise and writing them is a core's work beside a fast method.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ttgcd-features")
        self._writing: Future[None] | None = None

    def write(self, batch: Batch | None, rows: Answer) -> None:
        if rows.features is None or not len(rows):
            return
        if self.dim is None:
            self.dim = rows.features.shape[1]
        index = rows.index
        breaks = np.flatnonzero(index[1:] - index[:-1] != 1) + 1
        with self._lock:
            for begin, end in zip([0, *breaks], [*breaks, len(index)]):
                self._hold(int(index[begin]), rows.features[begin:end])
        self.count = max(self.count, int(index.max()) + 1)

    def _hold(self, at: int, rows: np.ndarray) -> None:
        """Rows that follow each other are written together."""
        if at != self._next:
            self._hand_over()
        if not self._held:
            self._first = at
        self._held.append(rows)
        self._next = at + len(rows)
        if self._next - self._first >= _AT_ONCE:
            self._hand_over()

    def _hand_over(self) -> None:
        """Let the writer have what is held, once it is done with what it got before."""
        if self._held:
            self._wait()
            held, self._held = self._held, []
            self._writing = self._writer.submit(self._put, self._first, held)

    def _wait(self) -> None:
        if self._writing is not None:
            before, self._writing = self._writing, None
            before.result()

    def _flush(self) -> None:
        """Everything is in the file when this returns."""
        with self._lock:
            self._hand_over()
            self._wait()

    def _put(self, first: int, rows: list[np.ndarray]) -> None:
        data = np.concatenate([np.asarray(part, _DTYPE) for part in rows])
        with writing(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                at = _HEADER + first * data.shape[1] * _DTYPE.itemsize
                _write_all(handle, data.data.cast("B"), at)
            finally:
                os.close(handle)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Unit features of a range of samples."""
        self._flush()
        with open(self.path, "rb") as file:
            return _unit(self._stretch(file, start, min(stop, self.count)))

    def at(self, places: np.ndarray) -> np.ndarray:
        """Unit features of samples at any places."""
        assert self.dim is not None
        self._flush()
        with open(self.path, "rb") as file:
            return _unit(_gathered(places, self.dim, partial(self._stretch, file)))

    def _stretch(self, file: IO[bytes], start: int, stop: int) -> np.ndarray:
        assert self.dim is not None
        width = self.dim * _DTYPE.itemsize
        file.seek(_HEADER + start * width)
        data = file.read((stop - start) * width)
        if len(data) != (stop - start) * width:
            raise InputError(f"{str(self.path)!r} has become shorter: start again")
        return np.frombuffer(data, _DTYPE).reshape(-1, self.dim)

    def finish(self, path: Path) -> None:
        """Put the whole as an ``.npy`` file at ``path``; it can be done again."""
        if self.dim is None:
            return
        self._flush()
        with writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                with open(self.path, "r+b") as file:
                    file.write(_npy_header((self.count, self.dim)))
                    file.truncate(_HEADER + self.count * self.dim * _DTYPE.itemsize)
                    file.flush()
                    os.fsync(file.fileno())
                _put_beside(self.path, path)

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        self._flush()
        if self.path.exists():
            with open(self.path, "rb") as file:
                os.fsync(file.fileno())
        return State({}, {"count": self.count, "dim": self.dim})

    def load(self, state: State) -> None:
        self.count, self.dim = state.values["count"], state.values["dim"]
        self._held, self._first, self._next = [], 0, 0
        least = 0 if self.dim is None else _HEADER + self.count * self.dim * _DTYPE.itemsize
        if least and (not self.path.exists() or self.path.stat().st_size < least):
            raise InputError(f"{str(self.path)!r} is damaged. Start again with `overwrite=True`")


class KeptFeatures:
    """The features of a finished run, read from disk where they are asked for.

    Indexing with a slice or with positions gives rows in half precision. It is no memory map: the
    pages of one would count as this process's memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
        if rows.ndim != 2 or rows.dtype != _DTYPE:
            raise ValueError(f"{str(path)!r} does not hold features")
        self.shape: tuple[int, int] = (rows.shape[0], rows.shape[1])
        self._offset = int(rows.offset)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self._read(start, max(start, stop))[::step]
        with open(self.path, "rb", buffering=0) as file:
            return _gathered(rows, self.shape[1], lambda first, end: self._rows(file, first, end))

    def _read(self, start: int, stop: int) -> np.ndarray:
        with open(self.path, "rb", buffering=0) as file:
            return self._rows(file, start, stop)

    def _rows(self, file: io.FileIO, start: int, stop: int) -> np.ndarray:
        width = self.shape[1] * _DTYPE.itemsize
        file.seek(self._offset + start * width)
        data = bytearray((stop - start) * width)
        room = memoryview(data)
        while len(room) and (count := file.readinto(room)):
            room = room[count:]
        return np.frombuffer(data, _DTYPE, len(data) // _DTYPE.itemsize).reshape(-1, self.shape[1])


def _gathered(
    places: np.ndarray, dim: int, stretch: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """Rows at any places. Neighbours, which are the usual case, are read together."""
    wanted = np.asarray(places, np.int64)
    found = np.empty((len(wanted), dim), _DTYPE)
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]
    breaks = np.flatnonzero(np.diff(ordered) > 1) + 1
    for begin, end in zip([0, *breaks], [*breaks, len(ordered)]):
        if begin < end:
            first, last = int(ordered[begin]), int(ordered[end - 1])
            found[order[begin:end]] = stretch(first, last + 1)[ordered[begin:end] - first]
    return found


def _put_beside(path: Path, place: Path) -> None:
    """The same file under a second name: a run that goes on after a crash finds it here still."""
    unfinished = place.with_name(place.name + ".tmp")
    unfinished.unlink(missing_ok=True)
    try:
        os.link(path, unfinished)
    except OSError:  # a file system without hard links
        shutil.copyfile(path, unfinished)
    os.replace(unfinished, place)
    sync_folder(place.parent)


def _unit(rows: np.ndarray) -> np.ndarray:
    """Half precision is not exactly of unit length."""
    values = rows.astype(np.float32)
    for begin in range(0, len(values), _CACHED):
        part = values[begin : begin + _CACHED]
        lengths = np.linalg.norm(part, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        part /= lengths
    return values


def _write_all(handle: int, room: memoryview, at: int) -> None:
    while len(room):
        written = os.pwrite(handle, room, at)
        room, at = room[written:], at + written


def _npy_header(shape: tuple[int, int]) -> bytes:
    """The header of a version 1.0 ``.npy`` file, padded to a fixed length."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": _DTYPE.str, "fortran_order": False, "shape": shape}
    )
    header = buffer.getvalue()
    assert len(header) == _HEADER, "numpy pads headers of this size to 128 bytes"
    return header
