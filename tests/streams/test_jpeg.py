"""The fast way through a JPEG gives what Pillow gives, bit for bit."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from sklearn.datasets import load_sample_image

from ttgcd.streams.base import Rejection, Source
from ttgcd.streams.decode import decode
from ttgcd.streams.jpeg import decode_jpeg
from ttgcd.streams.stream import Stream
from ttgcd.vlm.preprocess import Preprocess


@cache
def photograph() -> Image.Image:
    return Image.fromarray(load_sample_image("china.jpg")).crop((0, 0, 640, 424))


def encoded(image: Image.Image, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    return buffer.getvalue()


def by_pillow(data: bytes) -> np.ndarray:
    return np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"quality": 30},
        {"progressive": True},
        {"subsampling": 0},
        {"subsampling": 1},
        {"restart_marker_rows": 1},
    ],
)
def test_pixels_are_pillows_bit_for_bit(options: dict[str, Any]) -> None:
    data = encoded(photograph(), **options)
    assert decode_jpeg(data, 424, 640) is not None, "the fast path was not taken"
    np.testing.assert_array_equal(decode(data), by_pillow(data))


@pytest.mark.parametrize("size", [(1, 1), (7, 13), (17, 8)])
def test_odd_sizes_and_gray_are_pillows_too(size: tuple[int, int]) -> None:
    for mode in ("RGB", "L"):
        data = encoded(photograph().resize(size).convert(mode))
        np.testing.assert_array_equal(decode(data), by_pillow(data))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_turned_as_pillow_turns_it(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(photograph().crop((0, 0, 64, 40)), exif=exif)
    pixels = decode(data)
    assert pixels.flags.c_contiguous
    np.testing.assert_array_equal(pixels, by_pillow(data))


def test_half_a_file_is_refused_as_before() -> None:
    data = encoded(photograph())
    with pytest.raises(Rejection, match="truncated"):
        decode(data[: len(data) // 2])


class Memory(Source):
    """Encoded images in memory."""

    def __init__(self, files: list[bytes]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def id(self, position: int) -> str:
        return str(position)

    def read(self, position: int) -> bytes:
        return self.files[position]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_never_mixes_pictures_that_share_scratch_memory(workers: int) -> None:
    sides = [(300, 300), (96, 96), (200, 320), (32, 32), (32, 40), (300, 301)] * 6
    files = [
        encoded(photograph().crop((i, i, i + width, i + height)))
        for i, (height, width) in enumerate(sides)
    ]
    preprocess = Preprocess(size=32)
    with Stream(Memory(files), preprocess, batch_size=len(files), workers=workers) as stream:
        (batch,) = stream
    for file, image in zip(files, batch.images):
        np.testing.assert_array_equal(image, preprocess(by_pillow(file)))
