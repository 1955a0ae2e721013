"""Images as objects: PIL images, arrays, tensors, data sets, any iterable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from ttgcd.errors import InputError
from ttgcd.streams.base import Rejection, Source
from ttgcd.streams.decode import upright_rgb
from ttgcd.streams.spool import Spool

#: Where records keep their picture and their name, in the order in which they are looked for.
PICTURES = ("image", "img", "picture", "photo", "jpg", "png", "webp", "pixels")
NAMES = ("id", "image_id", "file_name", "filename", "path", "__key__")


class ObjectSource(Source):
    """A sequence of objects, each of which is or holds one image.

    An item may be a PIL image, a uint8 array (H, W, 3) or (3, H, W) or (H, W), a torch tensor
    (uint8, or floats in [0, 1]), encoded bytes, the path of a file, a pair whose first part is one
    of these (as torch data sets give), or a record with a field such as "image".
    """

    kind = "images"

    def __init__(self, items: Sequence[Any], what: str = "the list") -> None:
        self._items = items
        self._what = what

    def __len__(self) -> int:
        return len(self._items)

    def id(self, position: int) -> str:
        return str(position)

    def read(self, position: int) -> bytes | np.ndarray:
        try:
            item = self._items[position]
        except Exception as error:  # a data set runs code of its own
            raise Rejection(f"cannot be read: {type(error).__name__}: {error}") from error
        return pixels(item)

    def fingerprint(self) -> str:
        """Over at most a few items: hashing them all would read the data set twice."""
        digest = hashlib.sha256(f"objects {len(self)}".encode())
        for position in sorted({0, len(self) // 2, len(self) - 1} & set(range(len(self)))):
            try:
                data = self.read(position)
            except (ValueError, OSError):
                continue
            digest.update(data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes())
        return digest.hexdigest()


class SpooledSource(Source):
    """Images of an iterable that can be gone through only once, kept in a temporary file."""

    kind = "images"

    def __init__(self, items: Iterable[Any]) -> None:
        self._spool = Spool("the iterable of images")
        self._places: list[tuple[int, int, tuple[int, ...] | None] | str] = []
        self._ids: list[str] = []
        digest = hashlib.sha256()
        for number, item in enumerate(items):
            self._ids.append(name_of(item) or str(number))
            try:
                data = pixels(item)
            except (ValueError, OSError) as error:
                self._places.append(str(error))
                continue
            raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
            digest.update(raw)
            shape = None if isinstance(data, bytes) else data.shape
            self._places.append((self._spool.append(raw), len(raw), shape))
        if len(set(self._ids)) != len(self._ids):  # names that are not unique name nothing
            self._ids = [str(number) for number in range(len(self._ids))]
        if not self._ids:
            raise InputError("the iterable gave no image")
        self._digest = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._ids)

    def id(self, position: int) -> str:
        return self._ids[position]

    def read(self, position: int) -> bytes | np.ndarray:
        place = self._places[position]
        if isinstance(place, str):
            raise Rejection(place)
        offset, size, shape = place
        data = self._spool.read(offset, size)
        # Copied: torch warns of arrays that cannot be written.
        return data if shape is None else np.frombuffer(data, np.uint8).reshape(shape).copy()

    def fingerprint(self) -> str:
        return self._digest

    def close(self) -> None:
        self._spool.close()


def pixels(item: Any) -> bytes | np.ndarray:
    """Encoded bytes, or uint8 (H, W, 3), of an item; a ``Rejection`` that says what is wrong."""
    if isinstance(item, Image.Image):
        return np.array(upright_rgb(item))
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    if isinstance(item, (str, os.PathLike)):
        with open(item, "rb") as file:
            return file.read()
    if isinstance(item, Mapping):
        return _from_record(item)
    if isinstance(item, (tuple, list)) and len(item):
        return pixels(item[0])
    if hasattr(item, "detach"):  # a tensor, without importing torch for those who have none
        item = item.detach().cpu().numpy()
    if isinstance(item, np.ndarray):
        return _from_array(item)
    raise Rejection(f"a {type(item).__name__} is no image")


def name_of(item: Any) -> str | None:
    """The name that a record carries, if any."""
    if isinstance(item, (str, os.PathLike)):
        return os.fspath(item)
    if isinstance(item, Mapping):
        for key in NAMES:
            if isinstance(item.get(key), (str, int)):
                return str(item[key])
    return None


def _from_record(record: Mapping[str, Any]) -> bytes | np.ndarray:
    for key in PICTURES:
        if record.get(key) is not None:
            return pixels(record[key])
    if isinstance(record.get("bytes"), bytes):  # an image that was not decoded
        return bytes(record["bytes"])
    if isinstance(record.get("path"), str):
        return pixels(record["path"])
    raise Rejection(f"a record with {', '.join(map(str, record))} has no image")


def _from_array(array: np.ndarray) -> np.ndarray:
    if array.ndim == 2:
        array = np.repeat(array[..., None], 3, axis=2)
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = array.transpose(1, 2, 0)
    if array.ndim == 3 and array.shape[2] == 1:
        array = np.repeat(array, 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        raise Rejection(f"an array of shape {array.shape} is no image")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or array.min() < 0 or array.max() > 1:
            raise Rejection("pixels as floats must lie in [0, 1]: give uint8, or undo the scaling")
        array = np.rint(array * 255)
    elif array.dtype != np.uint8:
        raise Rejection(f"pixels are {array.dtype}, not uint8")
    return np.ascontiguousarray(array, np.uint8)
