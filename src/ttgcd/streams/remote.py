"""Files elsewhere: an address such as ``s3://bucket/photos/1.jpg``, read through fsspec.

An address is a string all the way, so that sources can be sent to other processes; fsspec keeps the
connection of each process. A file that is gone is set aside like a damaged one. A network that
fails is not: reading is tried again, and then the run stops, to be gone on with later, for the
answers must not depend on the weather.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from ttgcd.errors import InputError
from ttgcd.streams.base import Rejection

#: Files that are fetched side by side: most of the time of a small one is waiting.
AT_ONCE = 16
#: Seconds to wait before each further attempt.
PAUSES = (0.5, 2.0, 8.0)
#: How much of a large file is fetched at a time while it is read from front to back.
_PIECE = 1 << 20
#: Two characters or more before the colon: the drives of Windows have one.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+::)*[a-z][a-z0-9+.-]+://", re.IGNORECASE)
#: What to install, where it is not the package that fsspec's own class is in.
_DRIVERS = {"http": "aiohttp", "https": "aiohttp", "sftp": "paramiko", "ssh": "paramiko"}
#: What tells versions of a file apart, best first; filesystems have one or another of them.
_STAMPS = (
    "ETag",
    "etag",
    "md5Hash",
    "generation",
    "mtime",
    "LastModified",
    "last_modified",
    "created",
)

T = TypeVar("T")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a listing: its path from the folder that was listed, and what it is now."""

    relative: str
    stamp: str


def is_address(text: str) -> bool:
    """Whether this is an address and not a path."""
    return _ADDRESS.match(text) is not None


def local_path(text: str) -> str:
    """The path behind ``file://``; anything else as it is."""
    if not text.lower().startswith("file://"):
        return text
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise InputError(f"{text!r} names another machine: file:///path is a file of this one")
    return unquote(parts.path)


def file_name(address: str) -> str:
    """The address without what follows the path on the web (``?version=2``)."""
    return re.split(r"[?#]", address)[0] if _on_the_web(address) else address


def without_secrets(address: str) -> str:
    """The address without user, password and query, fit for a record of the run."""
    return re.sub(r"://[^/@]*@", "://", file_name(address))


def exists(address: str) -> bool:
    filesystem, path = _filesystem(address)
    return _tried(address, lambda: bool(filesystem.exists(path)))


def is_folder(address: str) -> bool:
    filesystem, path = _filesystem(address)
    return _tried(address, lambda: bool(filesystem.isdir(path)))


def listing(folder: str) -> list[RemoteFile]:
    """Every file below a folder."""
    filesystem, path = _filesystem(folder)
    found = _tried(folder, lambda: filesystem.find(path, detail=True))
    root = path.rstrip("/") + "/"
    files = []
    for name, info in found.items():
        relative = name.removeprefix(root).lstrip("/")
        if relative:  # some stores keep an empty object in the place of a folder
            files.append(RemoteFile(relative, _stamp_of(info)))
    return files


def matching(pattern: str) -> list[str]:
    """Addresses of the files that a pattern with ``*``, ``?`` or ``[..]`` stands for."""
    filesystem, path = _filesystem(pattern)
    found = sorted(_tried(pattern, lambda: filesystem.glob(path)))
    if pattern.endswith(path):  # what stands before it names the filesystem
        return [pattern[: len(pattern) - len(path)] + name for name in found]
    return [filesystem.unstrip_protocol(name) for name in found]


def join(folder: str, relative: str) -> str:
    return f"{folder.rstrip('/')}/{relative}"


def stamp(address: str) -> tuple[int, str]:
    """Size of a file, and what changes when it is written again."""
    filesystem, path = _filesystem(address)
    info = _tried(address, lambda: filesystem.info(path))
    if info.get("size") is None:
        raise InputError(f"the server of {address!r} does not tell its size: download the file")
    return int(info["size"]), _stamp_of(info)


def read(address: str, start: int | None = None, end: int | None = None) -> bytes:
    """The bytes of a file, or of a part of it."""
    filesystem, path = _filesystem(address)
    data = _tried(address, lambda: bytes(filesystem.cat_file(path, start=start, end=end)))
    if start is not None and end is not None and len(data) > end - start:
        raise InputError(f"the server of {address!r} gives no parts of files: download the file")
    return data


def open_file(address: str) -> io.BufferedReader:
    """A file to be read from any place on."""
    return io.BufferedReader(_Raw(address), _PIECE)


def side_by_side(read: Callable[[int], T], positions: Sequence[int]) -> Iterator[T | Exception]:
    """What ``read`` gives or raises for every position, in order, several at a time."""

    def one(position: int) -> T | Exception:
        try:
            return read(position)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            return error

    return _readers().map(one, positions)


class _Raw(io.RawIOBase):
    """Parts of a remote file, by the calls that Python makes of a file."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._size = stamp(address)[0]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, room: Any) -> int:
        end = min(self._at + len(room), self._size)
        if end <= self._at:
            return 0
        data = read(self._address, self._at, end)
        room[: len(data)] = data
        self._at += len(data)
        return len(data)


def _on_the_web(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def _stamp_of(info: dict[str, Any]) -> str:
    token = next((info[key] for key in _STAMPS if info.get(key) is not None), "")
    return f"{info.get('size')} {token}".strip()


def _filesystem(address: str) -> tuple[Any, str]:
    """The filesystem of an address, and the path in it."""
    from fsspec.core import url_to_fs
    from fsspec.registry import known_implementations

    scheme = re.split(r"://|::", address)[0].lower()
    try:
        return url_to_fs(address)
    except ImportError as error:
        known = known_implementations.get(scheme, {})
        package = str(known.get("class", scheme)).split(".")[0]
        package = _DRIVERS.get(scheme, package)
        if package == "fsspec":
            raise InputError(f"cannot read {scheme}:// here: {error}") from None
        raise InputError(
            f"{scheme}:// needs the package {package}: pip install {package}"
        ) from None
    except ValueError as error:
        raise InputError(f"cannot open {address!r}: {error}") from None
    except Exception as error:  # a driver that finds no account raises whatever it likes
        raise InputError(f"cannot open {address!r}: {_reason(error)}") from None


def _tried(address: str, call: Callable[[], T]) -> T:
    """What ``call`` gives, at the first attempt or a later one."""
    last: Exception | None = None
    for pause in (0.0, *PAUSES):
        time.sleep(pause)
        try:
            return call()
        except FileNotFoundError:
            raise Rejection(f"no such file: {without_secrets(address)}") from None
        except PermissionError as error:
            last = error
            break
        except Exception as error:  # every driver has errors of its own
            last = error
            if "credentials" in str(error).lower():
                break
    assert last is not None
    raise InputError(
        f"cannot read {without_secrets(address)!r}: {_reason(last)}; a run that has begun goes on "
        "with `resume=True`"
    )


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@cache
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ttgcd-remote")
