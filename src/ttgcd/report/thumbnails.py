"""Small square pictures of the samples of a source."""

from __future__ import annotations

import tempfile
import threading

import numpy as np
from PIL import Image, ImageOps

from ttgcd.streams.base import Source
from ttgcd.streams.decode import decode

#: Pictures that are kept while the stream decodes its images; those of longer streams are decoded
#: a second time.
MOST_KEPT = 8192


def thumbnail(source: Source, position: int, size: int) -> Image.Image | None:
    """The middle of the picture at ``position`` as a square of ``size`` pixels; None if there is
    no such picture or it cannot be read. A smaller picture is shown whole."""
    if source.kind != "images" or position < 0:
        return None
    try:
        data = source.read(position)
        return square(decode(data) if isinstance(data, bytes) else np.asarray(data), size)
    except Exception:  # damaged bytes make Pillow raise almost anything
        return None


def square(pixels: np.ndarray, size: int) -> Image.Image:
    """The middle of decoded pixels as a square picture."""
    image = Image.fromarray(pixels)
    image = image if image.mode == "RGB" else image.convert("RGB")
    short = min(image.size)
    if short < size // 2 or 2 * short < max(image.size):  # an icon, or a strip: all of it, framed
        return ImageOps.pad(image, (size, size), color=_edge_colour(np.asarray(image)))
    if short < size:
        return Image.fromarray(_framed(np.asarray(image), size))
    left, top = (image.width - short) // 2, (image.height - short) // 2
    box = (left, top, left + short, top + short)
    # Means of whole blocks first: of a large picture most pixels are read only once.
    return image.resize((size, size), Image.Resampling.BICUBIC, box=box, reducing_gap=1.01)


class KeptThumbnails:
    """Pictures made from what the stream decoded anyway, in a file without a name: it goes with the
    process. Whatever is not there is read from the source again."""

    def __init__(self, size: int, most: int = MOST_KEPT) -> None:
        self._size, self._most = size, most
        self._bytes = size * size * 3
        self._file = tempfile.TemporaryFile(prefix="ttgcd-pictures-")  # noqa: SIM115
        self._cells: dict[int, int] = {}
        self._lock = threading.Lock()

    def take(self, position: int, pixels: np.ndarray) -> None:
        """The image at ``position`` has been decoded; called by the threads that decode."""
        if len(self._cells) >= self._most:
            return
        picture = square(pixels, self._size).tobytes()
        with self._lock:
            cell = self._cells.setdefault(position, len(self._cells))
            self._file.seek(cell * self._bytes)
            self._file.write(picture)

    def get(self, position: int) -> np.ndarray | None:
        """The picture's pixels."""
        with self._lock:
            cell = self._cells.get(position)
            if cell is None:
                return None
            self._file.seek(cell * self._bytes)
            data = self._file.read(self._bytes)
        return np.frombuffer(data, np.uint8).reshape(self._size, self._size, 3)


def _framed(pixels: np.ndarray, size: int) -> np.ndarray:
    """A picture a little smaller than wanted: its pixels as they are, what is too long cut off."""
    height, width = pixels.shape[:2]
    top, left = max(0, (height - size) // 2), max(0, (width - size) // 2)
    part = pixels[top : top + size, left : left + size]
    frame = np.empty((size, size, 3), np.uint8)
    frame[:] = _edge_colour(part)
    top, left = (size - part.shape[0]) // 2, (size - part.shape[1]) // 2
    frame[top : top + part.shape[0], left : left + part.shape[1]] = part
    return frame


def _edge_colour(pixels: np.ndarray) -> tuple[int, ...]:
    """The commonest colour of the corners, so that a frame does not show."""
    corners = [tuple(pixels[y, x].tolist()) for x in (0, -1) for y in (0, -1)]
    return max(corners, key=corners.count)
