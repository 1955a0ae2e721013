"""Pictures and places of images, made when asked for and kept for the next who asks."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict

import numpy as np
from PIL import Image

from ttgcd.report.layout import layout
from ttgcd.report.thumbnails import square
from ttgcd.service.live import LiveStream
from ttgcd.service.schemas import Map, MapPoint
from ttgcd.streams.decode import decode

MOST_POINTS = 1200
SIZES = (96, 192, 512)


class Maps:
    """The map of every stream: drawn again when the images have grown by a quarter."""

    def __init__(self) -> None:
        self._drawn: dict[str, tuple[int, str, np.ndarray, np.ndarray, str]] = {}
        self._lock = threading.Lock()

    def of(self, stream: LiveStream) -> Map:
        file, rows = stream.learner.features, len(stream.views.now())
        if not rows or file.count < rows:
            return Map(projection="none", points=[])
        with self._lock:
            count, norms, index, points, name = self._drawn.get(
                str(stream.folder), (0, "", np.zeros(0, int), np.zeros((0, 2)), "none")
            )
            if not count <= rows < 1.25 * count or norms != stream.encoder.fingerprint:
                norms = stream.encoder.fingerprint
                index = np.unique(np.linspace(0, rows - 1, min(rows, MOST_POINTS)).astype(int))
                points, name = layout(file.at(index), stream.settings.seed)
                self._drawn[str(stream.folder)] = (rows, norms, index, points, name)
        shown = stream.rows.column("shown")
        return Map(
            projection=name,
            points=[
                MapPoint(index=i, x=round(x, 4), y=round(y, 4), category=int(shown[i]))
                for i, (x, y) in zip(index.tolist(), points.tolist())
            ],
        )


class Thumbnails:
    """Small JPEGs, the latest of them in memory. What goes to a browser has been decoded and
    written anew: the bytes that a client sent never reach another client."""

    def __init__(self, most_bytes: int = 64 * 2**20) -> None:
        self._kept: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._bytes, self._most = 0, most_bytes
        self._lock = threading.Lock()

    def get(self, stream: LiveStream, index: int, size: int) -> bytes:
        key = (str(stream.folder), index, size)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        picture = _small(stream.journal.read(index), size)
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=82)
        data = buffer.getvalue()
        with self._lock:
            self._kept[key] = data
            self._bytes += len(data)
            while self._bytes > self._most:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return data


def _small(data: bytes, size: int) -> Image.Image:
    """At most ``size`` pixels a side. A smaller image keeps its own size: the page enlarges it."""
    pixels = decode(data)
    short, long = sorted(pixels.shape[:2])
    return square(pixels, min(size, long if 2 * short < long else short))
