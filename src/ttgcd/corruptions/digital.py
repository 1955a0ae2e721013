"""Digital and colour corruptions: an image in [0, 1], the constants and a generator."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from PIL import Image
from scipy import ndimage

Rng = np.random.Generator
_Fold = Callable[[np.ndarray, int], np.ndarray]


def brightness(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """Add ``c`` to V of HSV. With hue and saturation fixed, that scales all three channels."""
    value = x.max(axis=2, keepdims=True)
    brighter = np.minimum(value + c, 1)
    black = value == 0
    return np.where(black, brighter, x * (brighter / np.where(black, 1, value)))


def saturate(x: np.ndarray, c: tuple[float, float], rng: Rng) -> np.ndarray:
    """S of HSV becomes S c0 + c1. Grey has hue 0, so it turns towards red when c1 > 0."""
    value = x.max(axis=2, keepdims=True)
    span = value - x.min(axis=2, keepdims=True)
    grey = span == 0
    saturation = span / np.where(value == 0, 1, value)
    new = np.clip(saturation * c[0] + c[1], 0, 1)
    coloured = value - (value - x) * (new / np.where(grey, 1, saturation))
    reddish = value * (1 - new * np.array([0.0, 1.0, 1.0]))
    return np.where(grey, reddish, coloured)


def contrast(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """Shrink the distance to the mean of each channel by ``c``."""
    mean = x.mean(axis=(0, 1), keepdims=True)
    return (x - mean) * c + mean


def jpeg_compression(x: np.ndarray, c: int, rng: Rng) -> np.ndarray:
    """Encode as JPEG of quality ``c`` and decode."""
    encoded = io.BytesIO()
    _picture(x).save(encoded, "JPEG", quality=c)
    encoded.seek(0)
    return np.asarray(Image.open(encoded)) / 255.0


def pixelate(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """Box-average down to the share ``c`` of the size and back."""
    height, width = x.shape[:2]
    small = (max(1, int(width * c)), max(1, int(height * c)))
    box = Image.Resampling.BOX
    return np.asarray(_picture(x).resize(small, box).resize((width, height), box)) / 255.0


def _picture(x: np.ndarray) -> Image.Image:
    return Image.fromarray(np.rint(x * 255).astype(np.uint8))


def elastic_transform(x: np.ndarray, c: tuple[float, float, float], rng: Rng) -> np.ndarray:
    """A small affine map through three jittered points, then a smooth random displacement."""
    amount, sigma, jitter = c
    height, width = x.shape[:2]
    middle = np.array([height // 2, width // 2], dtype=np.float64)
    third = min(height, width) // 3
    points = middle + third * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = points + rng.uniform(-jitter, jitter, size=points.shape)
    # Rows are (x, y, 1); ``back`` takes a point of the result to its place in the image.
    back = np.linalg.solve(np.column_stack([moved, np.ones(3)]), points)
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float64)
    from_x = xs * back[0, 0] + ys * back[1, 0] + back[2, 0]
    from_y = xs * back[0, 1] + ys * back[1, 1] + back[2, 1]
    x = _sample(x, from_y, from_x, _mirror)
    dx, dy = rng.uniform(-1, 1, size=(2, height, width))
    if amount == 0:
        return x
    dx, dy = (_smooth(d, sigma) * amount for d in (dx, dy))
    return _sample(x, ys + dy, xs + dx, _reflect)


def _smooth(field: np.ndarray, sigma: float) -> np.ndarray:
    rows, columns = (_smoothing(n, sigma) for n in field.shape)
    return rows @ field @ columns.T


@lru_cache(maxsize=8)
def _smoothing(size: int, sigma: float) -> np.ndarray:
    """A Gaussian filter as a matrix: the sigma may exceed the image, and it is used often."""
    return ndimage.gaussian_filter1d(np.eye(size), sigma, axis=0, mode="reflect", truncate=3.0)


def _mirror(index: np.ndarray, size: int) -> np.ndarray:
    """Fold indexes back so that the border pixel occurs once: c b | a b c | b a."""
    index = np.abs(index) % (2 * size - 2)
    return np.minimum(index, 2 * size - 2 - index)


def _reflect(index: np.ndarray, size: int) -> np.ndarray:
    """Fold indexes back so that the border pixel occurs twice: b a | a b c | c b."""
    index = index % (2 * size)
    return np.minimum(index, 2 * size - 1 - index)


def _sample(x: np.ndarray, ys: np.ndarray, xs: np.ndarray, fold: _Fold) -> np.ndarray:
    """Bilinear interpolation of every channel at (ys, xs)."""
    top, left = np.floor(ys).astype(int), np.floor(xs).astype(int)
    down, right = (ys - top)[:, :, None], (xs - left)[:, :, None]
    height, width = x.shape[:2]
    y0, y1 = fold(top, height), fold(top + 1, height)
    x0, x1 = fold(left, width), fold(left + 1, width)
    upper = x[y0, x0] * (1 - right) + x[y0, x1] * right
    lower = x[y1, x0] * (1 - right) + x[y1, x1] * right
    return upper * (1 - down) + lower * down
