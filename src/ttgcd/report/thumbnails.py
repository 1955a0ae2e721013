"""Small pictures inside the page, as data URIs."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from ttgcd.streams.base import Source
from ttgcd.streams.decode import decode


def thumbnail(source: Source, position: int, size: int = 96) -> str | None:
    """The picture at ``position`` as a JPEG data URI whose long side is at most ``2 * size`` and
    whose short side is about ``size``; None if there is no picture or it cannot be read."""
    if source.kind != "images":
        return None
    try:
        data = source.read(position)
        pixels = decode(data) if isinstance(data, bytes) else np.asarray(data)
        return _data_uri(pixels, size)
    except (OSError, ValueError, IndexError):  # Rejection is a ValueError
        return None


def _data_uri(pixels: np.ndarray, size: int) -> str:
    image = Image.fromarray(pixels).convert("RGB")
    scale = min(1.0, max(size / min(image.size), size / max(image.size)))
    width, height = (max(1, round(side * scale)) for side in image.size)
    # A panorama is cut to its middle: the page shows squares.
    image = image.resize((width, height), Image.Resampling.LANCZOS)
    left, top = max(0, width - 2 * size) // 2, max(0, height - 2 * size) // 2
    image = image.crop((left, top, min(width, left + 2 * size), min(height, top + 2 * size)))
    buffer = io.BytesIO()
    # Pictures of icon size are mostly hard edges: chroma subsampling would smear them.
    sampling = 0 if min(image.size) <= 48 else 2
    image.save(buffer, "JPEG", quality=82, optimize=True, subsampling=sampling)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
