"""Noise: every function takes an image in [0, 1], the constant and a generator."""

from __future__ import annotations

import numpy as np

Rng = np.random.Generator


def gaussian_noise(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """Additive normal noise of standard deviation ``c``, each channel on its own."""
    return x + rng.normal(scale=c, size=x.shape)


def shot_noise(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """Photon counts: Poisson(x c) / c."""
    return rng.poisson(x * c) / float(c)


def impulse_noise(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """A share ``c`` of all values becomes 0 or 1 with equal chance, each channel on its own."""
    hit = rng.random(x.shape) < c
    salt = rng.random(x.shape) < 0.5
    return np.where(hit, salt.astype(x.dtype), x)


def speckle_noise(x: np.ndarray, c: float, rng: Rng) -> np.ndarray:
    """Noise in proportion to the value: x + x N(0, c)."""
    return x + x * rng.normal(scale=c, size=x.shape)
