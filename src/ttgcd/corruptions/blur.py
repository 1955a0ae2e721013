"""Blurs: every function takes an image in [0, 1], its constants and a generator."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import fft, ndimage

Rng = np.random.Generator


def gaussian_blur(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """Gaussian of sigma ``c``, borders repeated."""
    return ndimage.gaussian_filter(x, (c, c, 0), mode="nearest")


def glass_blur(x: np.ndarray, c: tuple[float, int, int], rng: Rng) -> np.ndarray:
    """Blur, move pixels by a random shift, blur again.

    The published generator means to swap pixels, but its swap of two array views copies the
    neighbour and loses the pixel. The published images were made that way, so it is done here.
    """
    sigma, shift, passes = c
    # The generator quantises between the steps.
    x = np.floor(gaussian_blur(x, sigma, rng) * 255 + 1e-6) / 255
    for _ in range(passes):
        x = _take_from_neighbours(x, shift, rng)
    return gaussian_blur(x, sigma, rng)


def _take_from_neighbours(x: np.ndarray, shift: int, rng: Rng) -> np.ndarray:
    """From the bottom right to the top left, each pixel becomes a copy of a pixel near it.

    A pixel that copies from one already visited gets that one's new value: those chains are
    followed to their end by pointer doubling instead of a loop over pixels.
    """
    height, width = x.shape[:2]
    rows = np.arange(shift + 1, height - shift + 1)
    columns = np.arange(shift + 1, width - shift + 1)
    rows, columns = rows[rows < height], columns[columns < width]
    move = rng.integers(-shift, shift, size=(2, len(rows), len(columns)))
    here = rows[:, None] * width + columns[None, :]
    from_row = np.minimum(rows[:, None] + move[0], height - 1)
    from_column = np.minimum(columns[None, :] + move[1], width - 1)
    origin = from_row * width + from_column

    # follow[p] is the visited pixel p copies from; take[p] the untouched one, at a chain's end.
    every = np.arange(height * width)
    visited = np.zeros(height * width, dtype=bool)
    visited[here] = True
    take = every.copy()
    take[here] = origin
    # Larger flat index means visited earlier.
    chained = visited & (take > every) & visited[take]
    follow = np.where(chained, take, every)
    while True:
        further = follow[follow]
        if np.array_equal(further, follow):
            break
        follow = further
    return x.reshape(height * width, -1)[take[follow]].reshape(x.shape)


def defocus_blur(x: np.ndarray, c: tuple[float, float], rng: Rng) -> np.ndarray:
    """Convolution with a disk whose rim is smoothed, borders mirrored."""
    return _convolve(x, _disk(*c))


@lru_cache(maxsize=32)
def _disk(radius: float, alias_sigma: float) -> np.ndarray:
    """A normalised disk on a grid, smoothed by a 3x3 (radius <= 8) or 5x5 Gaussian."""
    reach = 8 if radius <= 8 else int(radius)
    half = 1 if radius <= 8 else 2
    line = np.arange(-reach, reach + 1)
    disk = (line[:, None] ** 2 + line[None, :] ** 2 <= radius**2).astype(np.float64)
    disk /= disk.sum()
    taps = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * alias_sigma**2))
    taps /= taps.sum()
    for axis in (0, 1):
        disk = ndimage.correlate1d(disk, taps, axis=axis, mode="mirror")
    used = np.flatnonzero(disk.any(axis=0))
    return disk[used[0] : used[-1] + 1, used[0] : used[-1] + 1]


def _convolve(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Symmetric-kernel convolution of each channel, borders mirrored."""
    if len(kernel) <= 7:
        return ndimage.convolve(x, kernel[:, :, None], mode="mirror")
    half = len(kernel) // 2
    padded = np.pad(x, ((half, half), (half, half), (0, 0)), mode="reflect")
    size = [fft.next_fast_len(n + len(kernel) - 1, real=True) for n in padded.shape[:2]]
    spectrum = fft.rfft2(padded, size, axes=(0, 1)) * fft.rfft2(kernel, size)[:, :, None]
    full = fft.irfft2(spectrum, size, axes=(0, 1))
    return full[2 * half : 2 * half + x.shape[0], 2 * half : 2 * half + x.shape[1]]


def motion_blur(x: np.ndarray, c: tuple[float, float], rng: Rng) -> np.ndarray:
    """One-sided Gaussian streak at an angle in +-45 degrees, rounded to whole levels."""
    blurred = streak(x, *c, angle=rng.uniform(-45, 45))
    return np.floor(blurred * 255 + 0.5) / 255


def streak(x: np.ndarray, radius: float, sigma: float, angle: float) -> np.ndarray:
    """ImageMagick's motion blur: 2 radius + 1 Gaussian taps, nearest pixel, borders repeated."""
    steps = np.arange(2 * math.ceil(radius) + 1)
    taps = np.exp(-(steps**2) / (2 * sigma**2))
    taps /= taps.sum()
    turn = math.radians(angle)
    # Rounded first: at exact halves the last bit of cos and sin would decide the pixel.
    right = np.ceil(np.round(steps * math.cos(turn), 9) - 0.5).astype(int)
    down = np.ceil(np.round(steps * math.sin(turn), 9) - 0.5).astype(int)
    height, width = x.shape[:2]
    above, left = max(0, -down.min()), max(0, -right.min())
    below, beyond = max(0, down.max()), max(0, right.max())
    edges = ((above, below), (left, beyond)) + ((0, 0),) * (x.ndim - 2)
    padded = np.pad(x, edges, mode="edge")
    out = np.zeros_like(x)
    for tap, dy, dx in zip(taps, down + above, right + left):
        out += tap * padded[dy : dy + height, dx : dx + width]
    return out


def zoom_blur(x: np.ndarray, c: tuple[float, ...], rng: Rng) -> np.ndarray:
    """Mean of the image and its centre zooms (the list starts with zoom 1)."""
    total = x.copy()
    for factor in c:
        total += zoom_in(x, factor)
    return total / (len(c) + 1)


def zoom_in(x: np.ndarray, factor: float) -> np.ndarray:
    """The centre of the image enlarged to the image's size, linear interpolation."""
    for axis in (0, 1):
        low, high, weight = _zoom_axis(x.shape[axis], factor)
        weight = weight.reshape((-1,) + (1,) * (x.ndim - 1 - axis))
        a = np.take(x, low, axis=axis)
        x = a + (np.take(x, high, axis=axis) - a) * weight
    return x


@lru_cache(maxsize=1024)
def _zoom_axis(size: int, factor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each output pixel: the two source pixels and the weight of the second.

    The crop has ceil(size / factor) pixels; it is stretched so that its first and last pixels
    stay first and last, and the middle ``size`` pixels are kept.
    """
    crop = math.ceil(size / factor)
    first = (size - crop) // 2
    stretched = max(size, round(crop * factor))
    trim = (stretched - size) // 2
    where = (np.arange(size) + trim) * ((crop - 1) / max(1, stretched - 1))
    low = np.minimum(where.astype(int), crop - 1)
    high = np.minimum(low + 1, crop - 1)
    return low + first, high + first, where - low
