"""Encoded bytes to pixels: uint8 HWC RGB, as a person would see the picture.

The bytes are not trusted. Only the formats listed here are opened, the size is checked before the
pixels are decoded, and whatever goes wrong becomes a ``Rejection`` with a reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import re
import warnings

import numpy as np
from PIL import Image, UnidentifiedImageError
from PIL.JpegImagePlugin import JpegImageFile

from ttgcd.streams.base import Rejection
from ttgcd.streams.formats import FORMATS, unknown_format
from ttgcd.streams.jpeg import decode_jpeg

MAX_PIXELS = 120_000_000  # the largest phone cameras give 108 million

# Pillow warns about odd metadata and large sizes. The first is harmless, the second is an error
# here, and neither should reach a user's terminal.
warnings.filterwarnings("ignore", module=r"PIL(\.|$)")
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
# Without a handler, logging prints its errors; with this one they go only where a program asks.
logging.getLogger("PIL").addHandler(logging.NullHandler())


def _silence_libtiff() -> None:
    """Its default error handler writes to stderr from C; Pillow raises the error anyway."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # built without libtiff
        library = ctypes.CDLL(Image.core.__file__)
        for name in ("TIFFSetErrorHandler", "TIFFSetErrorHandlerExt"):
            setter = getattr(library, name)
            setter.restype, setter.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
            setter(None)


_silence_libtiff()

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_EXIF_ORIENTATION = 0x0112
_TIFF_BITS, _TIFF_PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0


def decode(data: bytes, max_pixels: int = MAX_PIXELS, *, reuse: bool = False) -> np.ndarray:
    """Decode one image to a uint8 array (height, width, 3), or raise ``Rejection``.

    With ``reuse`` the array may be overwritten by this thread's next call.
    """
    if not data:
        raise Rejection("empty file")
    try:
        return _decode(data, max_pixels, reuse)
    except Rejection:
        raise
    except UnidentifiedImageError:
        raise Rejection(unknown_format(data)) from None
    except Image.DecompressionBombError as error:  # Pillow's own limit, before the size is known
        count = re.search(r"(\d+) pixels", str(error))
        size = f": {int(count[1]):,} in all" if count else ""
        raise Rejection(f"too many pixels{size} (limit {max_pixels})") from None
    except MemoryError:
        raise Rejection("not enough memory to decode") from None
    except Exception as error:
        # Damaged bytes make Pillow raise almost anything: OSError, SyntaxError, struct.error, ...
        raise Rejection(f"damaged: {one_line(error)}") from None


def one_line(error: BaseException, length: int = 160) -> str:
    """The message of an error as one short printable line."""
    text = re.sub(r"[\s\x00-\x1f\x7f]+", " ", str(error)).strip() or type(error).__name__
    return text if len(text) <= length else text[: length - 1] + "…"


def reason_of(error: Exception) -> str:
    """Why a sample was set aside, as one line without the paths of this machine."""
    if isinstance(error, Rejection):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return "file not found"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {one_line(error)}"


def _decode(data: bytes, max_pixels: int, reuse: bool) -> np.ndarray:
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        width, height = image.size
        if width < 1 or height < 1:
            raise Rejection("no pixels")
        if width * height > max_pixels:
            raise Rejection(f"too many pixels: {width} x {height} (limit {max_pixels})")
        if isinstance(image, JpegImageFile) and image.mode in ("RGB", "L"):
            pixels = decode_jpeg(data, height, width, reuse=reuse)
            if pixels is not None:
                return _upright(pixels, _orientation(image))
        return np.array(upright_rgb(image), dtype=np.uint8)


def upright_rgb(image: Image.Image) -> Image.Image:
    """Any image of Pillow's as a person would see it: turned, transparent parts white, RGB."""
    image.load()
    # After load: PNG may keep EXIF behind the pixels, and TIFF is turned upright by Pillow.
    turn = _UPRIGHT.get(_orientation(image))
    rgb = _rgb(image)
    return rgb if turn is None else rgb.transpose(turn)


def _upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """What ``_UPRIGHT`` does to an image of Pillow's, for an array."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _orientation(image: Image.Image) -> int:
    try:
        value = image.getexif().get(_EXIF_ORIENTATION, 1)
    except Exception:  # broken metadata does not make a picture unreadable
        return 1
    return value if isinstance(value, int) else 1


def _rgb(image: Image.Image) -> Image.Image:
    """Any Pillow mode to RGB; transparent parts become white."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(_eight_bits(image)).convert("RGB")
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        if image.mode == "La":
            image = image.convert("LA")
        front = image.convert("RGBA")
        white = Image.new("RGBA", front.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, front).convert("RGB")
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> np.ndarray:
    """Deep grayscale to 8 bits. What the file does not say about its range, the values say."""
    values = np.asarray(image).astype(np.float64)
    if not np.isfinite(values).all():
        raise Rejection("pixel values are not finite")
    tags = getattr(image, "tag_v2", {})
    low, high = float(values.min()), float(values.max())
    if image.mode.startswith("I;16") or image.format == "PNG":
        low, high = 0.0, 4095.0 if tags.get(_TIFF_BITS) == (12,) else 65535.0
    elif low >= 0 and high <= 1 and image.mode == "F":
        low, high = 0.0, 1.0
    elif low >= 0 and high <= 65535:
        low, high = 0.0, 255.0 if high <= 255 else 65535.0
    scaled = np.clip((values - low) / max(high - low, 1e-12), 0, 1)
    if tags.get(_TIFF_PHOTOMETRIC) == _WHITE_IS_ZERO:
        scaled = 1 - scaled
    return np.rint(scaled * 255).astype(np.uint8)
