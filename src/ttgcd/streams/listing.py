"""Images named one by one: a list file, paths on standard input, or a Python sequence.

Any of them may be an address.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ttgcd.errors import InputError
from ttgcd.streams import remote
from ttgcd.streams.files import MAX_FILE_BYTES, Files, readable_text
from ttgcd.wording import counted


class ListSource(Files):
    """Files in the order given. Links are followed: whoever lists a path means what it names.

    An id is the path as written with ``/`` between its parts.
    """

    def __init__(
        self, paths: Sequence[str], base: str = "", max_bytes: int = MAX_FILE_BYTES
    ) -> None:
        if not paths:
            raise InputError("the list of images is empty: give at least one path")
        ids = [readable_text(path.replace(os.sep, "/")) for path in paths]
        super().__init__([_joined(base, path) for path in paths], ids, max_bytes=max_bytes)
        self.folder = None if self.distant else os.path.abspath(base)
        self._repeated = len(ids) - len(set(ids))

    def notes(self) -> tuple[str, ...]:
        if not self._repeated:
            return ()
        again = counted(self._repeated, "path is", "paths are")
        return (f"{again} listed again; such ids end in #2, #3, ...",)


def read_list(path: str, max_bytes: int = MAX_FILE_BYTES) -> ListSource:
    """A text file with one path a line, relative to the folder that holds the list."""
    if remote.is_address(path):
        folder = remote.file_name(path).rpartition("/")[0]
        return ListSource(_lines(remote.read(path), path), folder, max_bytes)
    with open(path, "rb") as file:
        return ListSource(_lines(file.read(), path), os.path.dirname(path), max_bytes)


def read_stdin(max_bytes: int = MAX_FILE_BYTES) -> ListSource:
    """Paths on standard input, relative to the working folder."""
    source = ListSource(_lines(sys.stdin.buffer.read(), "standard input"), "", max_bytes)
    source.live = True
    return source


def _joined(base: str, path: str) -> str:
    """A list at an address names what is beside it, or other addresses: no files of this disk."""
    path = remote.local_path(path) if not remote.is_address(base) else path
    if remote.is_address(path):
        if remote.is_address(base) and path.lower().startswith(("file:", "local:")):
            raise InputError(f"a list at an address names a file of this machine: {path!r}")
        return path
    return (
        remote.join(base, path.lstrip("/")) if remote.is_address(base) else os.path.join(base, path)
    )


def _lines(data: bytes, where: str) -> list[str]:
    """Paths separated by newlines, or by NUL as ``find -print0`` writes them."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines = text.split("\0") if "\0" in text else text.replace("\r\n", "\n").split("\n")
    paths = [line for line in lines if line.strip()]
    if not paths:
        raise InputError(f"no path in {where}: it must hold one image path a line")
    return paths
