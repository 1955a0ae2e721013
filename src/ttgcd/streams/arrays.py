"""Arrays: ``.npy`` files read in place, or arrays in memory, of images or of embeddings."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic

from ttgcd.errors import InputError
from ttgcd.streams import remote
from ttgcd.streams.base import Source
from ttgcd.streams.decode import one_line
from ttgcd.streams.spool import Spool, copied

_CHECK_BYTES = 4 * 2**20
#: Rows that are normalised at once: few enough to stay in a processor's cache.
_CACHED = 256
_SAMPLED_ROWS = 1024
_COPYING = threading.Lock()


def _read_at(
    file: io.RawIOBase, rows: np.ndarray, offset: int, positions: Sequence[int]
) -> np.ndarray:
    """Fill every row from its place in the file, in one call a row where the system has such a
    call and the file is one of its own; the bytes read of each."""
    if not hasattr(os, "preadv") or not isinstance(file, io.FileIO):
        return np.zeros(len(rows), np.int64)
    width = rows.nbytes // len(rows)
    room = rows.reshape(-1).view(np.uint8).data
    rooms = ([room[begin : begin + width]] for begin in range(0, rows.nbytes, width))
    places = (offset + width * np.asarray(positions, np.int64)).tolist()
    # Without a loop in Python: other threads wait for its lock.
    read = map(os.preadv, repeat(file.fileno()), rooms, places)
    return np.fromiter(read, np.int64, len(rows))


class Rows:
    """The first axis of an array, read piece by piece.

    A file is mapped only to learn its shape: the pages of a map count as memory of this process
    and would grow with the length of the stream. A file at an address is copied to a nameless
    temporary one by the first to read from it.
    """

    def __init__(self, array: np.ndarray | str) -> None:
        self._array: np.ndarray | None = None
        self._copy: Spool | None = None
        if isinstance(array, np.ndarray):
            self._array, self.name = np.atleast_1d(array), "array"
            self.shape, self.dtype = self._array.shape, array.dtype
            self._stamp = self._sampled_hash()
            return
        self.name = array
        if remote.is_address(array):
            self._look_at_remote(array)
            return
        try:
            mapped = np.load(array, mmap_mode="r", allow_pickle=False)
            if not isinstance(mapped, np.memmap):
                raise ValueError("it does not hold a single array")
        except Exception as error:  # a damaged header makes numpy raise almost anything
            raise InputError(f"cannot read {array!r} as an array: {one_line(error)}") from None
        self.shape, self.dtype, self._offset = mapped.shape, mapped.dtype, mapped.offset
        if not mapped.flags.c_contiguous:
            self._array = mapped  # columns first: no piece of it is in one place
        status = os.stat(array)
        self._stamp = f"{status.st_size} {status.st_mtime_ns}"

    def __len__(self) -> int:
        return self.shape[0]

    def get(self, start: int, stop: int) -> np.ndarray:
        """A copy of the rows from start to stop."""
        if self._array is not None:
            return np.array(self._array[start:stop])
        rows = np.empty((stop - start, *self.shape[1:]), self.dtype)
        with self._file() as file:
            self._fill(file, start, rows)
        return rows

    def take(self, positions: Sequence[int]) -> np.ndarray:
        """The rows at the given positions."""
        first = positions[0]
        if list(positions) == list(range(first, first + len(positions))):
            return self.get(first, first + len(positions))
        if self._array is not None:
            return np.array(self._array[list(positions)])
        rows = np.empty((len(positions), *self.shape[1:]), self.dtype)
        with self._file() as file:
            read = _read_at(file, rows, self._offset, positions)
            for number in np.flatnonzero(read != rows.nbytes // len(rows)).tolist():
                self._fill(file, positions[number], rows[number : number + 1])
        return rows

    def _look_at_remote(self, address: str) -> None:
        size, stamp = remote.stamp(address)
        try:
            with remote.open_file(address) as file:
                head = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}
                self.shape, columns_first, self.dtype = head[read_magic(file)](file)
                self._offset = file.tell()
        except InputError:
            raise
        except Exception as error:  # a damaged header makes numpy raise almost anything
            raise InputError(f"cannot read {address!r} as an array: {one_line(error)}") from None
        if columns_first and len(self.shape) > 1:
            raise InputError(
                f"{address!r} is stored by columns: save numpy.ascontiguousarray of it"
            )
        self._stamp = f"{size} {stamp}"

    def _file(self) -> io.RawIOBase:
        if not remote.is_address(self.name):
            return open(self.name, "rb", buffering=0)
        with _COPYING:
            if self._copy is None:
                self._copy = copied(self.name)
        return self._copy.reader()

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which makes a copy of its own."""
        return {**vars(self), "_copy": None}

    def _fill(self, file: io.RawIOBase, start: int, rows: np.ndarray) -> None:
        """Read as many rows as there is room for, from row ``start`` on."""
        room = rows.reshape(-1).view(np.uint8).data
        file.seek(self._offset + start * (rows.nbytes // len(rows)))
        while len(room):
            count = file.readinto(room)
            if not count:
                raise InputError(f"{self.name} has become shorter while it was read")
            room = room[count:]

    @cached_property
    def _fingerprint(self) -> str:  # asked for once a sample
        text = f"{self.shape} {self.dtype.str} {self._stamp}"
        return hashlib.sha256(text.encode()).hexdigest()

    def fingerprint(self) -> str:
        return self._fingerprint

    def _sampled_hash(self) -> str:
        """Hash over at most a thousand rows spread evenly, so that it stays cheap."""
        assert self._array is not None
        rows = np.unique(np.linspace(0, max(len(self) - 1, 0), _SAMPLED_ROWS).astype(np.int64))
        picked = np.ascontiguousarray(self._array[rows[: len(self)]])
        return hashlib.sha256(picked.tobytes()).hexdigest()


class ArraySource(Source):
    """Images as uint8: (N, H, W, 3), (N, 3, H, W) or grayscale (N, H, W). Ids are row numbers."""

    kind = "images"

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def id(self, position: int) -> str:
        return str(position)

    def read(self, position: int) -> np.ndarray:
        return self.read_many([position])[0]

    def read_many(self, positions: Sequence[int]) -> np.ndarray:
        images = self._rows.take(positions)
        if images.ndim == 3:
            images = np.repeat(images[..., None], 3, axis=3)
        elif images.shape[3] != 3:
            images = images.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(images)

    def ids(self, positions: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(str, positions))

    def signature(self, position: int) -> str:
        return self._rows.fingerprint()

    def signed(self, positions: Sequence[int]) -> bytes:
        if not len(positions):
            return b""
        end = f"\0{self._rows.fingerprint()}\n"
        return (end.join(map(str, positions)) + end).encode()

    def fingerprint(self) -> str:
        return self._rows.fingerprint()


class EmbeddingSource(Source):
    """Feature vectors (N, d), normalised to unit length when read. Ids are row numbers."""

    kind = "embeddings"

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.dim: int = rows.shape[1]
        step = max(1, _CHECK_BYTES // (self.dim * 8))

        def check(start: int) -> None:
            self._check(rows.get(start, min(start + step, len(rows))), start)

        with ThreadPoolExecutor(2) as pool:
            for _ in pool.map(check, range(0, len(rows), step)):
                pass

    def __len__(self) -> int:
        return len(self._rows)

    def id(self, position: int) -> str:
        return str(position)

    def read(self, position: int) -> np.ndarray:
        return self.read_many([position])[0]

    def read_many(self, positions: Sequence[int]) -> np.ndarray:
        rows = self._rows.take(positions)
        units = np.empty(rows.shape, np.float32)
        for begin in range(0, len(rows), _CACHED):
            part = slice(begin, begin + _CACHED)
            units[part] = self._unit(rows[part], positions[part])
        return units

    def ids(self, positions: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(str, positions))

    def signature(self, position: int) -> str:
        return self._rows.fingerprint()

    def signed(self, positions: Sequence[int]) -> bytes:
        if not len(positions):
            return b""
        end = f"\0{self._rows.fingerprint()}\n"
        return (end.join(map(str, positions)) + end).encode()

    def fingerprint(self) -> str:
        return self._rows.fingerprint()

    def _check(self, rows: np.ndarray, first: int) -> None:
        """Refuse rows that have no direction, before the stream begins."""
        if _plain_lengths(_at_least_single(rows)) is None:
            self._exactly_unit(rows, range(first, first + len(rows)))

    def _unit(self, rows: np.ndarray, positions: Sequence[int]) -> np.ndarray:
        values = _at_least_single(rows)
        lengths = _plain_lengths(values)
        if lengths is None:
            return self._exactly_unit(rows, positions)
        return (values / lengths[:, None]).astype(np.float32, copy=False)

    def _exactly_unit(self, rows: np.ndarray, positions: Sequence[int]) -> np.ndarray:
        with np.errstate(all="ignore"):  # what cannot be normalised is reported below
            values = rows.astype(np.float64)
            lengths = np.sqrt((values * values).sum(axis=1))
        bad = ~(np.isfinite(lengths) & (lengths > 0))
        if bad.any():
            row = int(bad.argmax())
            zero = not values[row].any()
            what = "is all zero" if zero else "holds NaN or infinite values"
            raise InputError(
                f"{self._rows.name}: row {positions[row]} {what}; remove or recompute such rows"
            )
        return (values / lengths[:, None]).astype(np.float32)


def _at_least_single(rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.float32) if rows.dtype.itemsize < 4 else rows


def _plain_lengths(rows: np.ndarray) -> np.ndarray | None:
    """Lengths in the rows' own precision; None where squares may overflow or vanish in it."""
    with np.errstate(all="ignore"):
        squares = np.einsum("nd,nd->n", rows, rows)
    safe = (squares > 1e-30) & (squares < 1e30)
    return np.sqrt(squares) if safe.all() else None


def open_array(array: np.ndarray | str) -> ArraySource | EmbeddingSource:
    """Images or embeddings, told apart by type and shape."""
    rows = Rows(array)
    shape, dtype = rows.shape, rows.dtype
    if len(shape) and 0 in shape:
        raise InputError(f"{rows.name} is empty: its shape is {shape}")
    if dtype.kind == "f" and dtype.itemsize <= 8 and len(shape) == 2:
        return EmbeddingSource(rows)
    if dtype == np.uint8 and (len(shape) == 3 or (len(shape) == 4 and 3 in (shape[1], shape[3]))):
        return ArraySource(rows)
    raise InputError(
        f"{rows.name} holds {dtype} values of shape {shape}: expected uint8 images (N, H, W, 3), "
        "(N, 3, H, W) or (N, H, W), or floating-point embeddings (N, d)"
    )
