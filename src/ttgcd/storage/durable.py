"""Writing so that a crash, a kill or a full disk leaves either the old file or the new one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ttgcd.errors import InputError

_UNFINISHED = ".tmp"


def write_atomic(path: Path, data: bytes | Callable[[IO[bytes]], None]) -> None:
    """Put a whole file in place: write beside it, fsync, rename, fsync the folder.

    ``data`` is the content, or a function that writes it to the open file. After a failure the
    unfinished file is removed, for on a full disk its space is needed.
    """
    unfinished = path.with_name(path.name + _UNFINISHED)
    try:
        with open(unfinished, "wb") as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                data(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were created, renamed or removed in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC_FOLDERS:
            raise
    finally:
        os.close(handle)


# Some network and FUSE file systems have no fsync for folders; there is nothing better to do.
_CANNOT_SYNC_FOLDERS = {22, 95}  # EINVAL, EOPNOTSUPP


@contextmanager
def writing(out: Path, advice: str = "then go on with `resume=True`") -> Iterator[None]:
    """Turn a failure to write into one line that says what to do."""
    try:
        yield
    except OSError as error:
        what = error.strerror or str(error)
        raise InputError(
            f"cannot write to {str(out)!r}: {what}. Make room or allow writing, {advice}"
        ) from error
