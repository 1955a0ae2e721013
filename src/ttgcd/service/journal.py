"""The images of a stream, in the order of their arrival: one file that only grows.

An image is acknowledged when its record is on disk. Everything else a stream knows can be made
again from here, so a process may die at any moment. Records that arrive while a sync is under way
share the next one (group commit).

File: ``ttgcd.journal/1\\n``, then records: four little-endian uint32 (length of the header, length
of the image, CRC-32 of the header, CRC-32 of the image), the header (JSON: id, sha, at), the image.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
import time
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.service.errors import StorageError
from ttgcd.storage.durable import sync_folder

MAGIC = b"ttgcd.journal/1\n"
_HEAD = struct.Struct("<IIII")
#: Only what was not synced can be torn, and that is at most one group: images this far from the
#: end are read and checked when a journal is opened, of others the headers.
_CHECKED_TAIL = 64 * 2**20
_LONGEST_HEADER = 16 * 2**10


@dataclass(frozen=True)
class Entry:
    """An image that has arrived; ``pixels`` are what the model reads, kept for who comes next."""

    id: str
    data: bytes
    pixels: Any = None


@dataclass(frozen=True)
class Placed:
    """Where an image stands: ``new`` when this arrival put it there, ``conflict`` when another
    image has its id."""

    index: int
    new: bool
    conflict: bool = False


class Journal:
    """Append, read back, find by id.

    ``committed(first, entries)`` hears of new records once they are on disk, in order, from the
    journal's own thread.
    """

    def __init__(
        self, path: Path, committed: Callable[[int, Sequence[Entry]], None] | None = None
    ) -> None:
        self.path = path
        self.ids: dict[str, int] = {}
        self.names: list[str] = []
        self._committed = committed or (lambda first, entries: None)
        self._at = array("Q")  # offset of every image
        self._size = array("Q")
        self._sha = array("Q")
        self._arrived = array("d")
        self._lock = threading.Condition()
        self._waiting: list[Entry] = []
        self._futures: list[Future[None]] = []
        self._stop = False
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._end = self._scan()
        #: Records on disk; those behind it are not acknowledged yet.
        self.durable = len(self._at)
        self._thread = threading.Thread(target=self._run, name="ttgcd-journal", daemon=True)
        self._thread.start()

    # -- arriving -----------------------------------------------------------------------------

    def submit(self, entries: Sequence[Entry]) -> tuple[list[Placed], Future[None]]:
        """Places for images; the future is done when all of them are on disk."""
        done: Future[None] = Future()
        placed = []
        hashes = [_hash(entry.data) for entry in entries]
        with self._lock:
            if self._stop:
                raise StorageError("the service is stopping")
            for entry, sha in zip(entries, hashes):
                index = self.ids.get(entry.id)
                if index is not None:
                    placed.append(Placed(index, False, self._sha[index] != sha))
                    continue
                index = len(self.names)
                self.ids[entry.id] = index
                self.names.append(entry.id)
                self._sha.append(sha)
                self._waiting.append(entry)
                placed.append(Placed(index, True))
            self._futures.append(done)
            self._lock.notify()
        return placed, done

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._futures or self._stop)
                if not self._futures:
                    return
                entries, self._waiting = self._waiting, []
                futures, self._futures = self._futures, []
            first = self.durable
            try:
                self._write(first, entries)
            except OSError as error:
                self._forget(first, error, futures)
                continue
            if entries:
                self._committed(first, entries)
            for future in futures:
                future.set_result(None)

    def _write(self, first: int, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        now, parts, end = time.time(), [], self._end
        places = []
        for number, entry in enumerate(entries, first):
            sha = self._sha[number]
            header = json.dumps(
                {"id": entry.id, "sha": f"{sha:016x}", "at": round(now, 3)}
            ).encode()
            lengths = (len(header), len(entry.data), zlib.crc32(header), zlib.crc32(entry.data))
            parts += [_HEAD.pack(*lengths), header, entry.data]
            places.append((end + _HEAD.size + len(header), len(entry.data)))
            end = sum(places[-1])
        room, at = memoryview(b"".join(parts)), self._end
        while len(room):
            written = os.pwrite(self._handle, room, at)
            room, at = room[written:], at + written
        os.fsync(self._handle)
        for offset, size in places:
            self._at.append(offset)
            self._size.append(size)
            self._arrived.append(now)
        self._end, self.durable = end, len(self._at)

    def _forget(self, first: int, error: OSError, futures: Sequence[Future[None]]) -> None:
        """Nothing of this group, nor of what came meanwhile, was acknowledged: take it back."""
        with self._lock:
            futures = [*futures, *self._futures]
            self._futures, self._waiting = [], []
            for name in self.names[first:]:
                del self.ids[name]
            del self.names[first:], self._sha[first:]
            try:
                os.ftruncate(self._handle, self._end)
            except OSError:
                self._stop = True
        for future in futures:
            future.set_exception(StorageError(f"cannot keep images: {error.strerror}"))

    # -- reading ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.durable

    def read(self, index: int) -> bytes:
        """The image at a place, as it was sent."""
        if not 0 <= index < self.durable:
            raise IndexError(index)
        return os.pread(self._handle, self._size[index], self._at[index])

    def arrivals_since(self, moment: float) -> np.ndarray:
        """When images have arrived, in seconds since 1970, from the latest back to ``moment``."""
        first = bisect_left(self._arrived, moment)
        return np.array(self._arrived[first:], np.float64)

    @property
    def bytes(self) -> int:
        return self._end

    def close(self) -> None:
        with self._lock:
            self._stop = True
            self._lock.notify()
        self._thread.join()
        os.close(self._handle)

    # -- opening ------------------------------------------------------------------------------

    def _scan(self) -> int:
        """Read all headers; a torn end, which nobody was told of, is cut off."""
        size = os.fstat(self._handle).st_size
        if size < len(MAGIC):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, MAGIC, 0)
            os.fsync(self._handle)
            sync_folder(self.path.parent)
            return len(MAGIC)
        if os.pread(self._handle, len(MAGIC), 0) != MAGIC:
            raise InputError(f"{str(self.path)!r} is not a journal of this ttgcd: move it away")
        at = len(MAGIC)
        while (after := self._record(at, size)) is not None:
            at = after
        if at < size:
            if size - at > _CHECKED_TAIL:
                raise InputError(
                    f"{str(self.path)!r} is damaged at byte {at}, far from its end: restore it "
                    "from a copy"
                )
            os.ftruncate(self._handle, at)
            os.fsync(self._handle)
        return at

    def _record(self, at: int, size: int) -> int | None:
        if at + _HEAD.size > size:
            return None
        long, data, long_crc, data_crc = _HEAD.unpack(os.pread(self._handle, _HEAD.size, at))
        begin = at + _HEAD.size + long
        if long > _LONGEST_HEADER or begin + data > size:
            return None
        raw = os.pread(self._handle, long, at + _HEAD.size)
        if zlib.crc32(raw) != long_crc:
            return None
        near = begin + data > size - _CHECKED_TAIL
        if near and zlib.crc32(os.pread(self._handle, data, begin)) != data_crc:
            return None
        header = json.loads(raw)
        self.ids[header["id"]] = len(self.names)
        self.names.append(header["id"])
        self._sha.append(int(header["sha"], 16))
        self._at.append(begin)
        self._size.append(data)
        self._arrived.append(header["at"])
        return begin + data


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big")
