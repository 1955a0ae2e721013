"""Every kind of picture comes out as a person would see it; broken ones give a reason."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ttgcd.streams.base import Rejection
from ttgcd.streams.decode import decode
from ttgcd.streams.formats import FORMATS

pytestmark = pytest.mark.filterwarnings("ignore")  # damaged files make Pillow talk

RGB = np.array([[[250, 10, 20], [0, 255, 0], [9, 8, 7]], [[0, 0, 255], [77, 77, 77], [1, 2, 3]]])
RGB = RGB.astype(np.uint8)


def encode(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def png(width: int, height: int, depth: int, colour: int, rows: bytes) -> bytes:
    """A PNG written by hand, so that the expectation does not rest on the library's writer."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = zlib.compress(rows)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


def tiff(values: np.ndarray, bits: int, photometric: int, sample_format: int = 1) -> bytes:
    """A one-strip little-endian grayscale TIFF written by hand."""
    height, width = values.shape
    data = values.tobytes()
    tags = [
        (256, 4, width), (257, 4, height), (258, 3, bits), (259, 3, 1), (262, 3, photometric),
        (273, 4, 8), (277, 3, 1), (278, 4, height), (279, 4, len(data)), (339, 3, sample_format),
    ]  # fmt: skip
    pad = data + b"\0" * (len(data) % 2)
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    head = b"II*\0" + struct.pack("<I", 8 + len(pad))
    return head + pad + struct.pack("<H", len(tags)) + entries + struct.pack("<I", 0)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_rgb_is_exact(kind: str) -> None:
    pixels = decode(encode(Image.fromarray(RGB), kind))
    assert pixels.dtype == np.uint8 and pixels.flags.c_contiguous
    np.testing.assert_array_equal(pixels, RGB)


def test_lossless_webp_is_exact() -> None:
    np.testing.assert_array_equal(decode(encode(Image.fromarray(RGB), "WEBP", lossless=True)), RGB)


def test_jpeg_is_close() -> None:
    flat = np.full((16, 16, 3), (200, 100, 50), np.uint8)
    pixels = decode(encode(Image.fromarray(flat), "JPEG", quality=95))
    assert np.abs(pixels.astype(int) - flat).max() <= 3


def turned(image: np.ndarray, orientation: int) -> np.ndarray:
    """What the camera stored, so that its EXIF orientation shows ``image`` (EXIF table)."""
    stored = {
        1: image,
        2: image[:, ::-1],
        3: image[::-1, ::-1],
        4: image[::-1],
        5: image.swapaxes(0, 1),
        6: np.rot90(image, 1),  # shown after a quarter turn clockwise
        7: np.rot90(image, 2).swapaxes(0, 1),
        8: np.rot90(image, -1),
    }
    return np.ascontiguousarray(stored[orientation])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_exif_orientation(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    image = Image.fromarray(turned(RGB, orientation))
    np.testing.assert_array_equal(decode(encode(image, kind, exif=exif, **options)), RGB)


def test_exif_orientation_jpeg_and_nonsense_value() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.fromarray(np.zeros((10, 20, 3), np.uint8))
    assert decode(encode(image, "JPEG", exif=exif)).shape == (20, 10, 3)
    exif[0x0112] = 77
    assert decode(encode(image, "JPEG", exif=exif)).shape == (10, 20, 3)


def over_white(colour: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    alpha = alpha[..., None] / 255
    return colour * alpha + 255 * (1 - alpha)


ALPHA = np.array([[0, 255, 128], [64, 1, 254]], np.uint8)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_rgba_over_white(kind: str) -> None:
    pixels = decode(encode(Image.fromarray(np.dstack([RGB, ALPHA])), kind))
    assert np.abs(pixels - over_white(RGB, ALPHA)).max() <= 1


def test_gray_with_alpha_over_white() -> None:
    gray = RGB[..., 0]
    pixels = decode(encode(Image.fromarray(np.dstack([gray, ALPHA]), "LA"), "PNG"))
    assert np.abs(pixels - over_white(np.dstack([gray] * 3), ALPHA)).max() <= 1


def palette_image() -> Image.Image:
    image = Image.fromarray(np.array([[0, 1], [2, 1]], np.uint8), "P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255] + [0] * 759)
    return image


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "TIFF"])
def test_palette(kind: str) -> None:
    expected = [[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [0, 255, 0]]]
    np.testing.assert_array_equal(decode(encode(palette_image(), kind)), expected)


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_palette_with_transparent_entry(kind: str) -> None:
    expected = [[[255, 0, 0], [255, 255, 255]], [[0, 0, 255], [255, 255, 255]]]
    np.testing.assert_array_equal(decode(encode(palette_image(), kind, transparency=1)), expected)


def test_palette_with_partial_alpha() -> None:
    data = encode(palette_image(), "PNG", transparency=bytes([128, 255, 0]))
    pixels = decode(data)
    assert np.abs(pixels[0, 0] - np.array([255, 127, 127])).max() <= 1
    assert pixels[1, 0].tolist() == [255, 255, 255]
    assert pixels[0, 1].tolist() == [0, 255, 0]


def test_rgb_with_transparent_colour() -> None:
    pixels = decode(encode(Image.fromarray(RGB), "PNG", transparency=(0, 255, 0)))
    assert pixels[0, 1].tolist() == [255, 255, 255] and pixels[0, 0].tolist() == [250, 10, 20]


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF"])
def test_grayscale_and_one_bit(kind: str) -> None:
    gray = np.array([[0, 100], [255, 7]], np.uint8)
    np.testing.assert_array_equal(
        decode(encode(Image.fromarray(gray), kind)), np.dstack([gray] * 3)
    )
    bits = Image.fromarray(gray).point(lambda value: 255 * (value > 50)).convert("1")
    expected = np.dstack([np.array([[0, 255], [255, 0]])] * 3)
    np.testing.assert_array_equal(decode(encode(bits, kind)), expected)


DEEP = np.array([[0, 257, 65535], [32768, 40000, 128]], np.uint16)


def eight(values: np.ndarray) -> np.ndarray:
    return np.dstack([np.rint(values.astype(float) / 257)] * 3).astype(np.uint8)


def test_16_bit_png() -> None:
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in DEEP)
    np.testing.assert_array_equal(decode(png(3, 2, 16, 0, rows)), eight(DEEP))


def test_dark_16_bit_png_stays_dark() -> None:
    assert decode(png(1, 1, 16, 0, b"\0" + b"\x00\xc8")).max() == 1  # 200 of 65535


def test_16_bit_rgb_png() -> None:
    row = np.array([[65535, 0, 32768]], ">u2").tobytes()
    pixels = decode(png(1, 1, 16, 2, b"\0" + row))
    assert np.abs(pixels[0, 0].astype(int) - [255, 0, 128]).max() <= 1


def test_16_bit_tiff_both_polarities() -> None:
    np.testing.assert_array_equal(decode(tiff(DEEP, 16, 1)), eight(DEEP))
    np.testing.assert_array_equal(decode(tiff(DEEP, 16, 0)), eight(65535 - DEEP))


def test_deep_tiff_by_range() -> None:
    ints = np.array([[0, 65535, 257]], np.int32)
    np.testing.assert_array_equal(decode(tiff(ints, 32, 1, 2)), eight(ints))
    small = np.array([[0, 255, 100]], np.int32)
    np.testing.assert_array_equal(decode(tiff(small, 32, 1, 2))[0, :, 0], [0, 255, 100])
    unit = np.array([[0, 1, 0.5]], np.float32)
    np.testing.assert_array_equal(decode(tiff(unit, 32, 1, 3))[0, :, 0], [0, 255, 128])
    wide = np.array([[-1e6, 1e6, 0]], np.float32)
    np.testing.assert_array_equal(decode(tiff(wide, 32, 1, 3))[0, :, 0], [0, 255, 128])
    with pytest.raises(Rejection, match="not finite"):
        decode(tiff(np.array([[np.nan, 0]], np.float32), 32, 1, 3))


def test_cmyk() -> None:
    ink = np.zeros((16, 16, 4), np.uint8)
    ink[..., 0], ink[..., 3] = 255, 51  # full cyan, a fifth of black
    expected = np.array([0, 204, 204])
    image = Image.fromarray(ink, "CMYK")
    assert np.abs(decode(encode(image, "TIFF")) - expected).max() <= 1
    data = encode(image, "JPEG", quality=98)
    assert b"Adobe" in data  # Photoshop's convention: stored inverted
    assert np.abs(decode(data) - expected).max() <= 4


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_animation_gives_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "lime")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encode(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    np.testing.assert_array_equal(decode(data), np.full((8, 8, 3), (255, 0, 0)))


GOOD = encode(Image.fromarray(np.arange(3 * 40 * 30, dtype=np.uint8).reshape(40, 30, 3)), "PNG")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"I am a text file", "not an image"),
        (GOOD[: len(GOOD) // 2], "damaged"),
        (GOOD[:20], "not an image|damaged"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        (png(20_000, 20_000, 8, 0, b""), "too many pixels"),
        (png(11_000, 11_000, 8, 0, b""), "too many pixels: 11000 x 11000"),
    ],
)
def test_broken_input_has_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Rejection, match=reason) as caught:
        decode(data)
    assert "\n" not in str(caught.value) and "0x" not in str(caught.value)


@pytest.mark.parametrize("kind", ["JPEG", "GIF", "WEBP", "TIFF", "BMP"])
def test_truncated(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    data = encode(Image.fromarray(noise), kind)
    with pytest.raises(Rejection):
        decode(data[: len(data) // 2])


def test_limits_are_settable() -> None:
    with pytest.raises(Rejection, match=r"40|30"):
        decode(GOOD, max_pixels=1199)
    assert decode(GOOD, max_pixels=1200).shape == (40, 30, 3)


def test_formats_outside_the_list_are_not_opened() -> None:
    assert "EPS" not in FORMATS
    ppm = b"P6 1 1 255\n\x01\x02\x03"
    assert Image.open(io.BytesIO(ppm)).size == (1, 1)  # Pillow itself would
    with pytest.raises(Rejection, match="not an image"):
        decode(ppm)


SEEDS = [
    encode(Image.fromarray(RGB), "PNG"),
    encode(Image.fromarray(RGB), "BMP"),
    encode(Image.fromarray(RGB), "TIFF"),
    encode(Image.fromarray(RGB), "TIFF", compression="tiff_lzw"),
    encode(Image.fromarray(RGB), "WEBP"),
    encode(Image.fromarray(np.tile(RGB, (8, 8, 1))), "JPEG"),
    encode(palette_image(), "GIF", transparency=1),
]


@settings(max_examples=400, deadline=None)
@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=8),
    cut=st.none() | st.integers(0, 10_000),
)
def test_mutated_bytes_are_read_or_rejected(
    seed: bytes, edits: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(seed if cut is None else seed[: cut % (len(seed) + 1)])
    for place, value in edits:
        if data:
            data[place % len(data)] = value
    try:
        pixels = decode(bytes(data), max_pixels=1_000_000)
    except Rejection as rejection:
        assert str(rejection) and "\n" not in str(rejection)
    else:
        assert pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3


NOISY = """
import sys
from ttgcd.streams.decode import decode
for line in sys.stdin:
    try:
        decode(bytes.fromhex(line))
    except ValueError:
        pass
print("done")
"""


def test_no_warning_reaches_the_terminal() -> None:
    """In a process of its own: pytest has its own warning filters, and libtiff writes by itself."""
    damaged = bytearray(SEEDS[3])
    damaged[-40:-20] = b"\xff" * 20
    noisy = [
        encode(palette_image(), "PNG", transparency=bytes([1, 2, 3])),
        png(10_000, 10_000, 8, 0, b""),  # above Pillow's warning, below the limit here
        SEEDS[2][:-10],
        bytes(damaged),
        tiff(DEEP, 16, 1).replace(
            struct.pack("<HHII", 277, 3, 1, 1), struct.pack("<HHII", 277, 3, 1, 255)
        ),
        SEEDS[5][:-9],
    ]
    run = subprocess.run(
        [sys.executable, "-W", "always", "-c", NOISY],
        input="\n".join(data.hex() for data in noisy),
        capture_output=True,
        text=True,
    )
    assert (run.stdout, run.stderr) == ("done\n", "")
