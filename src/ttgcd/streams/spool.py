"""A nameless temporary file for data that can only be read from front to back."""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
from typing import IO, Any

from ttgcd.errors import InputError
from ttgcd.streams import remote

_PIECE = 8 << 20


class Spool:
    """Append-only bytes with random reads; gone when closed, even after a crash.

    Takes at most half of the space that is free at the start, so that an archive that expands
    without end cannot fill the disk.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._file = tempfile.TemporaryFile(prefix="ttgcd-")  # noqa: SIM115 - see close
        self._room = shutil.disk_usage(tempfile.gettempdir()).free // 2
        self._lock = threading.Lock()
        self.size = 0

    def append(self, data: bytes) -> int:
        """Add bytes at the end and return their offset."""
        offset = self.size
        if offset + len(data) > self._room:
            raise InputError(
                f"{self._what} needs more than {self._room} bytes of temporary space, half of "
                f"what is free in {tempfile.gettempdir()!r}: unpack it yourself or set TMPDIR"
            )
        with self._lock:
            self._file.seek(offset)
            self._file.write(data)
            self.size = offset + len(data)
        return offset

    def read(self, offset: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(offset)
            return self._file.read(size)

    def reader(self) -> io.RawIOBase:
        """All bytes, with a place of its own to read from."""
        return _Reader(self)

    def rewind(self) -> IO[bytes]:
        """The file itself, at its start, for a reader that wants a file object."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        self._file.close()


class _Reader(io.RawIOBase):
    def __init__(self, spool: Spool) -> None:
        self._spool, self._at = spool, 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        assert whence == io.SEEK_SET
        self._at = offset
        return offset

    def readinto(self, room: Any) -> int:
        data = self._spool.read(self._at, len(room))
        room[: len(data)] = data
        self._at += len(data)
        return len(data)


def copied(address: str) -> Spool:
    """A file at an address, copied piece by piece."""
    spool = Spool(address)
    size = remote.stamp(address)[0]
    for start in range(0, size, _PIECE):
        spool.append(remote.read(address, start, min(start + _PIECE, size)))
    return spool
