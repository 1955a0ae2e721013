"""Tar shards in the webdataset layout.

Members are never written to disk under their own names: an index of offsets is made once and each
image is read from the archive into memory. Compressed shards are first expanded to a nameless
temporary file, for they cannot be read at random.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import posixpath
import tarfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from ttgcd.errors import InputError
from ttgcd.streams import remote
from ttgcd.streams.base import Rejection, Source
from ttgcd.streams.decode import one_line
from ttgcd.streams.files import (
    MAX_FILE_BYTES,
    check_size,
    open_binary,
    readable_text,
    stamp_of,
    unique_ids,
)
from ttgcd.streams.formats import EXTENSIONS, UNREAD, extension_of, unread_note
from ttgcd.streams.spool import Spool
from ttgcd.wording import counted

_EXPAND: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}
_OPEN_SHARDS = 8
_CHUNK = 1 << 20


class _Member(NamedTuple):
    name: str
    offset: int
    size: int


class TarSource(Source):
    """Images of one or several shards, in shard order and then in archive order.

    The id is the member's key: its path up to the first dot of the file name. Of several images
    with one key, the first whose extension follows that dot is the sample (``1.jpg`` before
    ``1.mask.png``); without such a one, each is a sample and only the last extension is cut off.
    """

    def __init__(self, shards: Sequence[str], max_bytes: int = MAX_FILE_BYTES) -> None:
        self._shards = list(shards)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._files: OrderedDict[int, IO[bytes]] = OrderedDict()
        self._spools: dict[int, Spool] = {}
        self._notes: list[str] = []
        self._stamps = [stamp_of(shard) for shard in self._shards]
        self.distant = any(map(remote.is_address, self._shards))
        ids: list[str] = []
        spans: list[tuple[int, int, int]] = []
        for shard in range(len(self._shards)):
            members = self._members(shard)
            chosen = list(_samples(members))
            if len(chosen) < len(members):
                extra = len(members) - len(chosen)
                more = counted(extra, "further image", "further images")
                self._notes.append(f"{self._shards[shard]}: {more} of samples")
            ids += [key for key, _ in chosen]
            spans += [(shard, member.offset, member.size) for _, member in chosen]
        if not ids:
            self.close()
            why = f" ({self._notes[0]})" if self._notes else ""
            raise InputError(f"no image member in {self._shards[0]!r}{why}")
        self._ids = unique_ids(ids)
        self._spans = np.array(spans, np.int64)
        repeated = len(ids) - len(set(ids))
        if repeated:
            again = counted(repeated, "key occurs", "keys occur")
            self._notes.append(f"{again} again; such ids end in #2, #3, ...")

    def __len__(self) -> int:
        return len(self._ids)

    def id(self, position: int) -> str:
        return self._ids[position]

    def read(self, position: int) -> bytes:
        shard, offset, size = (int(value) for value in self._spans[position])
        if ".." in self._ids[position].split("/"):
            raise Rejection("member name points outside the archive")
        check_size(size, self._max_bytes)
        if shard in self._spools:
            data = self._spools[shard].read(offset, size)
        elif remote.is_address(self._shards[shard]):
            data = remote.read(self._shards[shard], offset, offset + size) if size else b""
        else:
            with self._lock:
                file = self._file(shard)
                file.seek(offset)
                data = file.read(size)
        if len(data) != size:
            raise Rejection("archive ends inside this member")
        return data

    def signature(self, position: int) -> str:
        shard, offset, size = self._spans[position]
        shard_size, modified = self._stamps[shard]
        return f"{shard_size} {modified} {offset} {size}"

    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        for spool in self._spools.values():
            spool.close()
        self._spools.clear()

    def __getstate__(self) -> dict[str, Any]:
        """For another process: the index, without what is open here."""
        return {**vars(self), "_lock": None, "_files": None, "_spools": sorted(self._spools)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state["_spools"]
        vars(self).update(state, _lock=threading.Lock(), _files=OrderedDict(), _spools={})
        self._notes = list(self._notes)
        for shard in packed:
            self._members(shard)  # expands it here

    def _file(self, shard: int) -> IO[bytes]:
        """An open shard; the one unused for the longest time makes room for another."""
        if shard in self._files:
            self._files.move_to_end(shard)
        else:
            if len(self._files) == _OPEN_SHARDS:
                self._files.popitem(last=False)[1].close()
            self._files[shard] = open(self._shards[shard], "rb")  # noqa: SIM115 - see close
        return self._files[shard]

    def _members(self, shard: int) -> list[_Member]:
        path = self._shards[shard]
        with open_binary(path) as file:
            expand = _EXPAND.get(file.read(2))
            file.seek(0)
            if expand is None:
                return self._index(path, file)
            spool = self._spools[shard] = Spool(path)
            self._expand(path, expand(file, "rb"), spool)
        return self._index(path, spool.rewind())

    def _expand(self, path: str, packed: Any, spool: Spool) -> None:
        try:
            with packed:
                while chunk := packed.read1(_CHUNK):  # not read: it loses what came before damage
                    spool.append(chunk)
        except InputError:
            raise
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            self._notes.append(f"{path} is damaged, used as far as readable: {one_line(error)}")

    def _index(self, path: str, file: IO[bytes]) -> list[_Member]:
        """Image members of one archive, as far as its headers can be read."""
        members = []
        skipped = 0
        unread: list[str] = []
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                end = -1
                while (info := archive.next()) is not None:
                    archive.members = []  # type: ignore[attr-defined]  # or it would keep every header of a large archive
                    if archive.offset <= end:  # a negative size would loop forever
                        raise tarfile.ReadError("member of negative size")
                    end = archive.offset
                    name = readable_text(posixpath.normpath("/" + info.name).lstrip("/"))
                    if ".." in info.name.split("/"):
                        name = readable_text(info.name)
                    hidden = posixpath.basename(name).startswith(".")
                    extension = extension_of(name)
                    if extension in UNREAD and not hidden:
                        unread.append(extension)
                    if extension not in EXTENSIONS or hidden:
                        continue
                    if info.isreg() and not info.issparse():
                        members.append(_Member(name, info.offset_data, info.size))
                    else:
                        skipped += 1
        except InputError:
            raise
        except Exception as error:  # damaged headers make tarfile raise almost anything
            self._notes.append(f"{path} is damaged, used as far as readable: {one_line(error)}")
        if unread:
            self._notes.append(f"{path}: {unread_note(unread)}")
        if skipped:
            left = counted(skipped, "link or special member", "links or special members")
            self._notes.append(f"{path}: left out {left}")
        return members


def _samples(members: Sequence[_Member]) -> Iterator[tuple[str, _Member]]:
    """One image a key, in archive order."""
    plain: dict[str, _Member] = {}
    for member in members:
        key, extension = _key(member.name)
        if extension.lower() in EXTENSIONS:
            plain.setdefault(key, member)
    for member in members:
        key, _ = _key(member.name)
        if key not in plain:
            yield posixpath.splitext(member.name)[0], member
        elif plain[key] is member:
            yield key, member


def _key(name: str) -> tuple[str, str]:
    folder, slash, file = name.rpartition("/")
    stem, dot, extension = file.partition(".")
    return folder + slash + stem, dot + extension
