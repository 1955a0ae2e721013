"""Small square pictures of the samples of a source."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageOps

from ttgcd.streams.base import Source
from ttgcd.streams.decode import decode

_JPEG = b"\xff\xd8\xff"


def thumbnail(source: Source, position: int, size: int) -> Image.Image | None:
    """The middle of the picture at ``position`` as a square of ``size`` pixels; None if there is
    no such picture or it cannot be read. A smaller picture is shown whole."""
    if source.kind != "images" or position < 0:
        return None
    try:
        image = _image(source.read(position), size)
    except Exception:  # damaged bytes make Pillow raise almost anything
        return None
    if min(image.size) < size:  # an icon, or a strip: all of it, framed
        return ImageOps.pad(image, (size, size), color=_edge_colour(image))
    return ImageOps.fit(image, (size, size), Image.Resampling.LANCZOS)


def _image(data: bytes | np.ndarray, size: int) -> Image.Image:
    """The picture, not much larger than needed: a JPEG can be decoded at an eighth of its size."""
    if not isinstance(data, bytes):
        return Image.fromarray(np.asarray(data)).convert("RGB")
    if not data.startswith(_JPEG):
        return Image.fromarray(decode(data))
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
        image.draft("RGB", (2 * size, 2 * size))
        return ImageOps.exif_transpose(image).convert("RGB")


def _edge_colour(image: Image.Image) -> tuple[int, int, int]:
    """The commonest colour of the corners, so that a frame does not show."""
    corners = [image.getpixel((x, y)) for x in (0, image.width - 1) for y in (0, image.height - 1)]
    return max(corners, key=corners.count)  # type: ignore[return-value]
