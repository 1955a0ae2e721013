"""One process at a time in an output folder."""

from __future__ import annotations

import errno
import fcntl
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ttgcd.errors import InputError

_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


@contextmanager
def only_process(path: Path, out: Path) -> Iterator[None]:
    """Hold the lock file ``path``, or raise ``InputError`` when a live process holds it.

    The lock is the kernel's and goes away with the process, however that ends: a lock file left by
    a dead process is simply taken over.
    """
    handle = _take(path, out)
    try:
        yield
    finally:
        try:
            with suppress(OSError):
                if os.fstat(handle).st_ino == path.stat().st_ino and not _has_others(path):
                    path.unlink()
        finally:
            os.close(handle)


def _take(path: Path, out: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(handle, 100, 0).decode("ascii", "replace").strip()
            os.close(handle)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                who = f" (process {holder})" if holder else ""
                raise InputError(
                    f"another process{who} is writing to {str(out)!r}: wait for it, stop it, "
                    "or choose another `out=...`"
                ) from None
            if error.errno not in _NO_LOCKS:
                raise
            warnings.warn(
                f"the file system of {str(out)!r} has no locks: "
                "make sure that no other process writes to it",
                stacklevel=4,
            )
            return os.open(path, os.O_RDWR)
        # The file may have been removed by its last holder between open and flock.
        with suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == path.stat().st_ino:
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
                return handle
        os.close(handle)


def _has_others(path: Path) -> bool:
    """Whether the lock's folder still holds something else: then the lock file stays with it."""
    return len(os.listdir(path.parent)) > 1
