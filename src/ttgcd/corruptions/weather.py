"""Weather: every function takes an image in [0, 1], its constants and a generator."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from ttgcd.corruptions.blur import streak, zoom_in
from ttgcd.corruptions.frost_plates import frost_plate, n_plates

Rng = np.random.Generator

_GREY = np.array([0.299, 0.587, 0.114])
_WATER = np.array([175, 238, 238]) / 255
_MUD = np.array([63, 42, 20]) / 255


def snow(
    x: np.ndarray, c: tuple[float, float, float, float, float, float, float], rng: Rng
) -> np.ndarray:
    """A thresholded, zoomed, motion-blurred normal layer and its half turn over a paler image."""
    mean, deviation, zoom, threshold, radius, sigma, mix = c
    flakes = zoom_in(rng.normal(mean, deviation, size=x.shape[:2]), zoom)
    flakes = np.where(flakes < threshold, 0, np.clip(flakes, 0, 1))
    # The published layer passes through 8-bit pictures before and after the streak.
    flakes = np.floor(flakes * 255 + 1e-6) / 255
    flakes = streak(flakes, radius, sigma, angle=rng.uniform(-135, -45))
    flakes = np.floor(flakes * 255 + 0.5) / 255
    grey = (x @ _GREY)[:, :, None]
    paler = mix * x + (1 - mix) * np.maximum(x, grey * 1.5 + 0.5)
    return paler + (flakes + flakes[::-1, ::-1])[:, :, None]


def frost(x: np.ndarray, c: tuple[float, float, float], rng: Rng) -> np.ndarray:
    """c0 times the image plus c1 times a random crop of a frost plate."""
    image_weight, frost_weight, scale = c
    height, width = x.shape[:2]
    plate = frost_plate(int(rng.integers(n_plates())), scale, height, width)
    top = rng.integers(0, plate.shape[0] - height + 1)
    left = rng.integers(0, plate.shape[1] - width + 1)
    crop = plate[top : top + height, left : left + width] / 255.0
    return image_weight * x + frost_weight * crop


def fog(x: np.ndarray, c: tuple[float, float], rng: Rng) -> np.ndarray:
    """Add a diamond-square plasma and scale back to the image's own maximum."""
    weight, decay = c
    height, width = x.shape[:2]
    brightest = x.max()
    mist = _plasma(max(height, width), decay, rng)[:height, :width, None]
    return (x + weight * mist) * brightest / (brightest + weight)


def _plasma(size: int, decay: float, rng: Rng) -> np.ndarray:
    """A diamond-square height map on a torus, scaled to [0, 1].

    The roughness starts at 100 and is divided by ``decay`` at each halving; as in the published
    generator the noise has the square of the roughness as its range.
    """
    side = 1 << max(0, size - 1).bit_length()
    height = np.zeros((side, side))
    roughness, step = 100.0, side
    while step >= 2:
        half = step // 2

        def displaced(total: np.ndarray, rough: float = roughness) -> np.ndarray:
            return total / 4 + rough * rng.uniform(-rough, rough, size=total.shape)

        corners = height[::step, ::step]
        below = np.roll(corners, -1, axis=0)
        right = np.roll(corners, -1, axis=1)
        centres = displaced(corners + below + right + np.roll(below, -1, axis=1))
        height[half::step, half::step] = centres
        height[::step, half::step] = displaced(
            centres + np.roll(centres, 1, axis=0) + corners + right
        )
        height[half::step, ::step] = displaced(
            centres + np.roll(centres, 1, axis=1) + corners + below
        )
        step = half
        roughness /= decay
    height -= height.min()
    return height / height.max()


def spatter(
    x: np.ndarray, c: tuple[float, float, float, float, float, int], rng: Rng
) -> np.ndarray:
    """Drops of water (light, with a rim) or mud (dark, opaque) on the lens."""
    mean, deviation, sigma, threshold, strength, mud = c
    liquid = rng.normal(mean, deviation, size=x.shape[:2])
    liquid = ndimage.gaussian_filter(liquid, sigma, mode="nearest")
    liquid[liquid < threshold] = 0
    if mud:
        mask = ndimage.gaussian_filter((liquid > threshold).astype(float), strength, mode="nearest")
        mask[mask < 0.8] = 0
        mask = mask[:, :, None]
        return x * (1 - mask) + mask * _MUD
    levels = np.floor(np.clip(liquid, 0, 1) * 255 + 1e-6)
    shine = levels * _relief(levels)
    brightest = shine.max()
    if brightest > 0:
        shine *= strength / brightest
    return x + shine[:, :, None] * _WATER


def _relief(levels: np.ndarray) -> np.ndarray:
    """How a drop catches the light: the embossed, equalised distance to its outline."""
    outline = _canny(levels, low=50, high=150)
    if outline.any():
        distance = np.minimum(ndimage.distance_transform_edt(~outline), 20)
    else:
        distance = np.full(levels.shape, 20.0)
    smoothed = np.floor(ndimage.uniform_filter(distance, 3, mode="mirror") + 1e-6)
    emboss = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    lit = ndimage.correlate(_equalise(smoothed.astype(int)), emboss, mode="mirror")
    return ndimage.uniform_filter(np.clip(lit, 0, 255).astype(float), 3, mode="mirror")


def _equalise(levels: np.ndarray) -> np.ndarray:
    """Histogram equalisation of whole levels 0..255 with the lowest level sent to 0."""
    counts = np.bincount(levels.ravel(), minlength=256)
    lowest = int(np.flatnonzero(counts)[0])
    rest = levels.size - counts[lowest]
    if rest == 0:
        return levels
    table = (counts.cumsum() - counts[lowest]) * (255.0 / rest)
    return np.floor(table + 0.5 - 1e-9)[levels].astype(int)


def _canny(levels: np.ndarray, low: float, high: float) -> np.ndarray:
    """Edges: ridges of the Sobel gradient above ``low`` that touch one above ``high``."""
    dx = ndimage.sobel(levels, axis=1, mode="nearest")
    dy = ndimage.sobel(levels, axis=0, mode="nearest")
    size = np.abs(dx) + np.abs(dy)
    around = np.pad(size, 1)
    height, width = size.shape

    def beside(down: int, right: int) -> np.ndarray:
        return around[1 + down : 1 + down + height, 1 + right : 1 + right + width]

    flat = np.abs(dy) <= np.abs(dx) * np.tan(np.pi / 8)
    steep = np.abs(dy) >= np.abs(dx) * np.tan(3 * np.pi / 8)
    same = dx * dy >= 0
    before = np.select(
        [flat, steep, same], [beside(0, -1), beside(-1, 0), beside(-1, -1)], beside(-1, 1)
    )
    after = np.select(
        [flat, steep, same], [beside(0, 1), beside(1, 0), beside(1, 1)], beside(1, -1)
    )
    ridge = (size > before) & (size >= after) & (size > low)
    groups, _ = ndimage.label(ridge, structure=np.ones((3, 3)))
    strong = np.unique(groups[ridge & (size > high)])
    return ridge & np.isin(groups, strong)
