"""One call for every kind of input: look at what was given and open it."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.streams import remote
from ttgcd.streams.arrays import open_array
from ttgcd.streams.base import Rejection, Source
from ttgcd.streams.decode import MAX_PIXELS, decode, reason_of
from ttgcd.streams.files import MAX_FILE_BYTES
from ttgcd.streams.folder import FolderSource, RemoteFolder
from ttgcd.streams.formats import EXTENSIONS, UNREAD
from ttgcd.streams.listing import ListSource, read_list, read_stdin

LISTS = (".txt", ".list", ".lst")
TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MAX_BRACES = 100_000

#: What can be opened: a path, paths, an array, a data set, or any iterable of images.
Spec = str | Path | np.ndarray | Source | Sequence[Any] | Iterable[Any]


def open_source(
    spec: Spec, *, max_bytes: int = MAX_FILE_BYTES, max_pixels: int = MAX_PIXELS
) -> Source:
    """Open a folder, list file, ``-`` (paths on stdin), tar, parquet, ``.npy``, array, paths (all
    of them here or at an address such as ``s3://bucket/photos``), or objects: PIL images, arrays,
    tensors, a data set of torch, Hugging Face or Ray, any iterable.

    Raises ``InputError`` for what does not exist, is of no supported kind, or holds no readable
    image.
    """
    source = _open(spec, max_bytes)
    if isinstance(spec, (str, os.PathLike)) and source.origin is None:
        source.origin = _origin(os.fspath(spec))
    try:
        require_readable(source, max_pixels)
    except BaseException:
        source.close()
        raise
    return source


def require_readable(source: Source, max_pixels: int = MAX_PIXELS) -> None:
    """Look for one readable image, so that a hopeless input fails before a model is loaded."""
    if source.kind == "embeddings":
        return
    first = ""
    for position in range(len(source)):
        try:
            data = source.read(position)
            if isinstance(data, bytes):
                decode(data, max_pixels)
            return
        except InputError:
            raise
        except (OSError, ValueError) as error:
            first = first or f"{source.id(position)}: {reason_of(error)}"
    raise InputError(f"no readable image among {len(source)}; the first: {first}")


def _open(spec: Spec, max_bytes: int) -> Source:
    if isinstance(spec, Source):
        return spec
    if isinstance(spec, np.ndarray):
        return open_array(spec)
    if not isinstance(spec, (str, os.PathLike)):
        return _open_objects(spec, max_bytes)
    if spec == "-":
        return read_stdin(max_bytes)
    path = remote.local_path(os.fspath(spec))
    if remote.is_address(path):
        try:
            return _open_remote(path, max_bytes)
        except Rejection as error:
            raise InputError(str(error)) from None
    try:
        if os.path.isdir(path):
            return _open_folder(path, max_bytes)
        if os.path.isfile(path):
            return _open_files([path], max_bytes)
        if found := _expand(path):
            return _open_files(found, max_bytes)
        if os.path.exists(path):
            raise InputError(f"{path!r} is neither a file nor a folder")
    except OSError as error:
        raise InputError(f"cannot open {path!r}: {error.strerror or error}") from None
    raise InputError(f"no such file or folder: {path!r}")


def _open_objects(spec: Any, max_bytes: int) -> Source:
    """Paths, images, a data set with items, or whatever can be gone through."""
    from ttgcd.streams.objects import ObjectSource, SpooledSource
    from ttgcd.streams.ray_dataset import is_ray_dataset, open_ray_dataset

    if is_ray_dataset(spec):
        return open_ray_dataset(spec)
    if hasattr(spec, "detach"):  # a tensor of many images or embeddings
        return open_array(spec.detach().cpu().numpy())
    if isinstance(spec, Mapping) and spec:  # a DatasetDict of Hugging Face among them
        first = next(iter(spec))
        raise InputError(
            f"a {type(spec).__name__} holds several sources: give one, as in data[{first!r}]"
        )
    if isinstance(spec, (set, frozenset, Mapping)):
        raise InputError(f"a {type(spec).__name__} has no order: give a list")
    if not isinstance(spec, Iterable) and not hasattr(spec, "__getitem__"):
        raise InputError(f"a {type(spec).__name__} is no source of images: give a path or a list")
    if hasattr(spec, "__len__") and hasattr(spec, "__getitem__"):
        if not len(spec):
            raise InputError(f"the {type(spec).__name__} is empty: there is no image in it")
        if isinstance(spec, (list, tuple)) and all(isinstance(p, (str, os.PathLike)) for p in spec):
            return _open_several([os.fspath(path) for path in spec], max_bytes)
        return ObjectSource(spec)
    items = iter(spec)
    first = next(items, None)
    if first is None:
        raise InputError("the iterable is empty: there is no image in it")
    everything = itertools.chain([first], items)
    if isinstance(first, (str, os.PathLike)):
        return _open_several([os.fspath(path) for path in everything], max_bytes)
    return SpooledSource(everything)


def _open_several(paths: list[str], max_bytes: int) -> Source:
    """Paths of images in the order given; folders and shards among them are opened, and a pattern
    stands for its files, as if the shell had put them there."""

    def whole(path: str) -> bool:
        if remote.is_address(path):
            name = remote.file_name(path).lower()
            return not name.endswith((*EXTENSIONS, *UNREAD))
        return os.path.isdir(path) or path.lower().endswith((*TARS, *LISTS, ".parquet", ".npy"))

    paths = [name for path in paths for name in _files_of(path)]
    if not any(map(whole, paths)):
        return ListSource(paths, max_bytes=max_bytes)
    from ttgcd.streams.several import Several

    parts: list[tuple[str, Source]] = []
    for is_whole, group in itertools.groupby(paths, whole):
        if is_whole:
            parts += [(path, _open(path, max_bytes)) for path in group]
        else:
            parts.append(("", ListSource(list(group), max_bytes=max_bytes)))
    return Several(parts)


def _files_of(path: str) -> list[str]:
    """The files that a pattern stands for; anything else is itself."""
    if remote.is_address(path):
        names = _braces(path)
        if names == [path] and not _has_magic(path):
            return names
        found = [
            f for name in names for f in (remote.matching(name) if _has_magic(name) else [name])
        ]
    elif os.path.exists(path) or not (glob.has_magic(path) or _braces(path) != [path]):
        return [path]
    else:
        found = _expand(path)
    if not found:
        raise InputError(f"no file matches {remote.without_secrets(path)!r}")
    return found


def _open_folder(path: str, max_bytes: int) -> Source:
    try:
        return FolderSource(path, max_bytes)
    except InputError:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
        if not (shards := _shards(names)):
            raise
        return _open_files([os.path.join(path, name) for name in shards], max_bytes)


def _open_remote(address: str, max_bytes: int) -> Source:
    names = _braces(address)
    patterned = [name for name in names if _has_magic(name)]
    if patterned:
        names = [found for name in names for found in remote.matching(name)]
        if not names:
            raise InputError(f"no file matches {address!r}")
    if len(names) > 1 or patterned or _is_file_name(address):
        return _open_files(names, max_bytes)
    if remote.is_folder(address):
        try:
            return RemoteFolder(address, max_bytes)
        except InputError:
            here = (file.relative for file in remote.listing(address))
            shards = _shards(sorted(n for n in here if "/" not in n and not n.startswith(".")))
            if not shards:
                raise
            return _open_files([remote.join(address, name) for name in shards], max_bytes)
    if not remote.exists(address):
        raise InputError(f"no such file or folder: {remote.without_secrets(address)!r}")
    return _open_files([address], max_bytes)


def _has_magic(address: str) -> bool:
    """Whether it is a pattern; on the web a question mark is none."""
    return glob.has_magic(remote.file_name(address))


def _is_file_name(address: str) -> bool:
    name = remote.file_name(address).lower()
    return name.endswith((*TARS, *LISTS, ".parquet", ".npy", *EXTENSIONS))


def _shards(names: list[str]) -> list[str]:
    """Tar shards among files, or else parquet files."""
    for suffixes in (TARS, (".parquet",)):
        if shards := [name for name in names if name.lower().endswith(suffixes)]:
            return shards
    return []


def _origin(spec: str) -> str:
    if spec == "-":
        return "standard input"
    path = remote.local_path(spec)
    return remote.without_secrets(path) if remote.is_address(path) else os.path.abspath(path)


def _open_files(paths: list[str], max_bytes: int) -> Source:
    """One file, or several of the same kind."""
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise InputError(f"files of different kinds ({', '.join(sorted(kinds))}): give one kind")
    kind = kinds.pop()
    if kind == "tar":
        from ttgcd.streams.tar import TarSource

        return TarSource(paths, max_bytes)
    if kind == "parquet":
        from ttgcd.streams.parquet import ParquetSource

        return ParquetSource(paths, max_bytes)
    if kind == "image":
        return ListSource(paths, max_bytes=max_bytes)
    if len(paths) > 1:
        raise InputError(f"{len(paths)} {kind} files match: give one")
    return open_array(paths[0]) if kind == "array" else read_list(paths[0], max_bytes)


def _kind(path: str) -> str:
    name = remote.file_name(path).lower() if remote.is_address(path) else path.lower()
    extension = os.path.splitext(name)[1]
    if name.endswith(TARS):
        return "tar"
    if extension == ".parquet":
        return "parquet"
    if extension == ".npy":
        return "array"
    if extension in LISTS:
        return "list"
    if extension in EXTENSIONS:
        return "image"
    if extension in UNREAD:
        raise InputError(f"cannot read {path!r}: {UNREAD[extension]}")
    advice = {
        ".npz": "save the array alone with numpy.save",
        ".csv": "write the image paths to a .txt file, one a line",
        ".zip": "unpack it and give the folder",
    }.get(extension, "give a folder, a list (.txt), .tar, .parquet or .npy")
    raise InputError(f"cannot use {path!r} as input: {advice}")


def _expand(pattern: str) -> list[str]:
    """Files that a pattern with ``{000..012}``, ``{a,b}``, ``*``, ``?`` or ``[..]`` stands for."""
    found: list[str] = []
    expanded = _braces(pattern)
    for name in expanded:
        if glob.has_magic(name):
            found += sorted(glob.glob(name, recursive=True))
        elif os.path.isfile(name):
            found.append(name)
        elif len(expanded) > 1:
            raise InputError(f"no such file: {name!r} (from {pattern!r})")
    return [name for name in found if os.path.isfile(name)]


def _braces(pattern: str) -> list[str]:
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    body = match[1]
    span = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", body)
    if span:
        first, last = int(span[1]), int(span[2])
        if last - first >= _MAX_BRACES:
            raise InputError(f"{pattern!r} stands for more than {_MAX_BRACES} files")
        choices = [str(number).zfill(len(span[1])) for number in range(first, last + 1)]
    else:
        choices = body.split(",")
    before, after = pattern[: match.start()], pattern[match.end() :]
    return [before + choice + rest for choice in choices for rest in _braces(after)]
