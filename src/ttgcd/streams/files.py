"""Image files by path or address: what folders and lists have in common."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import IO

import numpy as np

from ttgcd.streams import remote
from ttgcd.streams.base import Rejection, Source

MAX_FILE_BYTES = 256 * 2**20
_MISSING, _NOT_ASKED = -1, -2
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Files(Source):
    """Files given by path; the sizes and times of the moment it was opened are its signature.

    Addresses among the paths are not asked for theirs: that would be a request for every image.
    """

    def __init__(
        self,
        paths: Sequence[str],
        ids: Sequence[str],
        *,
        inside: str | None = None,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self._paths = list(paths)
        self._ids = unique_ids(ids)
        self._inside = None if inside is None else os.path.realpath(inside)
        self._folders: dict[str, str] = {}
        self._max_bytes = max_bytes
        self.distant = any(map(remote.is_address, self._paths))
        self._stamps = np.array([_stamp(path) for path in self._paths], np.int64).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self._paths)

    def id(self, position: int) -> str:
        return self._ids[position]

    def path(self, position: int) -> str:
        """The file of a sample."""
        return self._paths[position]

    def read(self, position: int) -> bytes:
        path = self._paths[position]
        if not remote.is_address(path):
            return read_file(path, self._max_bytes, self._inside, self._folders)
        data = remote.read(path)
        check_size(len(data), self._max_bytes)
        return data

    def signature(self, position: int) -> str:
        size, modified = self._stamps[position]
        if size == _NOT_ASKED:
            return "not asked"
        return "missing" if size == _MISSING else f"{size} {modified}"


def read_file(
    path: str,
    max_bytes: int = MAX_FILE_BYTES,
    inside: str | None = None,
    folders: dict[str, str] | None = None,
) -> bytes:
    """All bytes of a regular file that is not too large and, if asked, inside a folder.

    Opened without blocking, so that a pipe or a device in the way cannot hang the stream.
    ``folders`` remembers where the folders of earlier files really are.
    """
    handle = os.open(path, _FLAGS) if inside is None else _opened(path, inside, folders)
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise Rejection("a folder, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise Rejection("not a regular file")
        check_size(status.st_size, max_bytes)
        data = os.read(handle, status.st_size + 1)  # more than there should be
        while len(data) < status.st_size and (more := os.read(handle, status.st_size)):
            data += more
    finally:
        os.close(handle)
    if len(data) != status.st_size:
        raise Rejection("file changed while it was read")
    return data


def _opened(path: str, inside: str, folders: dict[str, str] | None) -> int:
    """The file, opened if it really lies in the folder. Most files of a folder are no links:
    opening them shows that, and where the folder is needs to be asked once."""
    folders = {} if folders is None else folders
    folder, name = os.path.split(path)
    if folder not in folders:
        real = os.path.realpath(folder)
        folders[folder] = real if is_inside(real, inside) else ""
    if folders[folder] and (_NO_LINK or not os.path.islink(path)):
        try:
            return os.open(os.path.join(folders[folder], name), _FLAGS | _NO_LINK)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EMLINK):
                raise
    real = os.path.realpath(path)
    if not is_inside(real, inside):
        raise Rejection("symbolic link to a place outside the folder")
    return os.open(real, _FLAGS | _NO_LINK)


def open_binary(path: str) -> IO[bytes]:
    """A file of this machine or at an address, to be read from any place on."""
    return remote.open_file(path) if remote.is_address(path) else open(path, "rb")


def stamp_of(path: str) -> tuple[int, int | str]:
    """Size of a file, and what changes when it is written again."""
    if remote.is_address(path):
        return remote.stamp(path)
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def check_size(size: int, max_bytes: int) -> None:
    """Refuse encoded images above the limit before they are read."""
    if size > max_bytes:
        raise Rejection(f"file too large: {size} bytes (limit {max_bytes})")


def is_inside(path: str, folder: str) -> bool:
    """Whether a resolved path lies in a resolved folder."""
    try:
        return os.path.commonpath((path, folder)) == folder
    except ValueError:  # different drives
        return False


def readable_text(raw: str) -> str:
    """A name that may hold undecodable bytes, as valid Unicode (such bytes become ``\\xNN``)."""
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def unique_ids(ids: Sequence[str]) -> list[str]:
    """The ids, with ``#2``, ``#3`` ... behind the second and later use of the same one."""
    if len(set(ids)) == len(ids):
        return list(ids)
    taken = set(ids)
    counts: dict[str, int] = {}
    result = []
    for name in ids:
        count = counts.get(name, 0) + 1
        unique = name
        if count > 1:
            while (unique := f"{name}#{count}") in taken:
                count += 1
            taken.add(unique)
        counts[name] = count
        result.append(unique)
    return result


def _stamp(path: str) -> tuple[int, int]:
    if remote.is_address(path):
        return _NOT_ASKED, 0
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return _MISSING, 0
    return status.st_size, status.st_mtime_ns
