"""Frosted glass, drawn here: crystals over clouds, with the tones of photographs of frost.

The published sets use five photographs. These plates stand in for them: each has the mean
colour, the spread of tones and roughly the size of one photograph, but its crystals are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from PIL import Image, ImageDraw
from scipy import fft, ndimage

_SEED = 20260115
_HEIGHT, _WIDTH = 450, 660


@dataclass(frozen=True)
class _Style:
    tones: tuple[int, ...]  # grey level at the percentiles below
    tint: tuple[int, int, int]  # added to grey, per channel
    crystals: int  # how many crystals
    length: float  # their mean length in pixels
    barbs: bool  # feathers instead of needles
    clouds: float  # weight of the smooth part, 0 to 1


_PERCENTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
_STYLES = (
    _Style((85, 97, 104, 118, 129, 142, 163, 177, 200), (-53, 18, 35), 900, 30, False, 0.6),
    _Style((100, 141, 166, 195, 210, 222, 236, 245, 255), (-6, -2, 8), 2600, 45, False, 0.25),
    _Style((110, 146, 170, 198, 211, 222, 236, 245, 255), (-5, -2, 7), 1600, 70, True, 0.2),
    _Style((60, 82, 104, 134, 152, 169, 199, 234, 255), (-14, 1, 13), 3500, 14, False, 0.3),
    _Style((30, 45, 60, 92, 119, 151, 203, 238, 255), (-11, 0, 11), 1300, 40, True, 0.3),
)


def n_plates() -> int:
    """How many plates there are."""
    return len(_STYLES)


@lru_cache(maxsize=32)
def frost_plate(number: int, scale: float, height: int, width: int) -> np.ndarray:
    """Plate ``number`` at ``scale``, enlarged if needed to cover ``height`` x ``width`` (uint8)."""
    plate = _draw(number)
    grow = max(1.0, height / (_HEIGHT * scale), width / (_WIDTH * scale))
    size = (math.ceil(_WIDTH * scale * grow), math.ceil(_HEIGHT * scale * grow))
    if size == (_WIDTH, _HEIGHT):
        return plate
    # The published generator shrinks without smoothing: at 0.2 it keeps every fifth pixel.
    how = Image.Resampling.NEAREST if size < (_WIDTH, _HEIGHT) else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(plate).resize(size, how))


@cache
def _draw(number: int) -> np.ndarray:
    style = _STYLES[number]
    rng = np.random.default_rng([_SEED, number])
    crystals, clouds = _ranks(_crystals(style, rng)), _ranks(_clouds(rng))
    relief = (1 - style.clouds) * crystals + style.clouds * clouds
    grey = np.interp(_ranks(relief) * 100, _PERCENTILES, style.tones)
    colour = grey[:, :, None] + np.array(style.tint)
    return (np.clip(colour, 0, 255) + 1e-6).astype(np.uint8)


def _crystals(style: _Style, rng: np.random.Generator) -> np.ndarray:
    """Needles or feathers of random direction and brightness, later ones over earlier ones."""
    canvas = Image.new("L", (_WIDTH, _HEIGHT), 40)
    pen = ImageDraw.Draw(canvas)
    for _ in range(style.crystals):
        x, y = rng.uniform(-20, _WIDTH + 20), rng.uniform(-20, _HEIGHT + 20)
        turn, length = rng.uniform(0, 2 * math.pi), style.length * rng.gamma(3, 1 / 3)
        shade = int(rng.integers(30, 256))
        _line(pen, x, y, turn, length, shade, width=2)
        if style.barbs:
            for along in np.arange(0.1, 0.95, 3.5 / max(length, 8)):
                root = (x + along * length * math.cos(turn), y + along * length * math.sin(turn))
                for side in (-1, 1):
                    barb = 0.45 * length * (1 - along) * rng.uniform(0.7, 1.2)
                    lean = turn + side * rng.uniform(0.8, 1.1)
                    _line(pen, *root, lean, barb, int(shade * rng.uniform(0.6, 1)), width=1)
    grain = rng.normal(scale=12, size=(_HEIGHT, _WIDTH))
    return ndimage.gaussian_filter(np.asarray(canvas, dtype=np.float64) + grain, 0.8)


def _line(
    pen: ImageDraw.ImageDraw, x: float, y: float, turn: float, length: float, shade: int, width: int
) -> None:
    # Whole pixels, so that the drawing does not depend on how a fraction is rounded.
    end = (round(x + length * math.cos(turn)), round(y + length * math.sin(turn)))
    pen.line([(round(x), round(y)), end], fill=shade, width=width)


def _clouds(rng: np.random.Generator) -> np.ndarray:
    """Noise whose power falls with the cube of the frequency."""
    down = fft.fftfreq(_HEIGHT)[:, None] * _HEIGHT
    right = fft.rfftfreq(_WIDTH)[None, :] * _WIDTH
    power = np.maximum(np.hypot(down, right), 1) ** -1.5
    noise = rng.normal(size=(_HEIGHT, _WIDTH))
    return fft.irfft2(fft.rfft2(noise) * power, s=(_HEIGHT, _WIDTH))


def _ranks(field: np.ndarray) -> np.ndarray:
    """Each value's rank, scaled to [0, 1]."""
    ranks = np.empty(field.size)
    ranks[np.argsort(np.round(field, 9), axis=None, kind="stable")] = np.linspace(0, 1, field.size)
    return ranks.reshape(field.shape)
