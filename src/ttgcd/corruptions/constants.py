"""The published constants of the nineteen corruptions, severities 1 to 5.

Two tables: ``cifar`` (the CIFAR-C generator, 32-pixel images) and ``imagenet`` (the ImageNet-C
generator, 224-pixel images). Lengths are in pixels of the image and are never rescaled.
"""

from __future__ import annotations

from typing import Any, Literal

Table = Literal["cifar", "imagenet"]

# The paper evaluates on these, in the order of its tables.
KINDS: tuple[str, ...] = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)
# Hyper-parameters are chosen on these four and on nothing else.
HELD_OUT: tuple[str, ...] = ("gaussian_blur", "saturate", "spatter", "speckle_noise")
ALL_KINDS: tuple[str, ...] = KINDS + HELD_OUT
SEVERITIES: tuple[int, ...] = (1, 2, 3, 4, 5)


def _zooms(end: float, step: float) -> tuple[float, ...]:
    """1, 1 + step, ... up to and including ``end``."""
    return tuple(round(1 + i * step, 2) for i in range(round((end - 1) / step) + 1))


_CIFAR: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),  # standard deviation
    "shot_noise": (500, 250, 100, 75, 50),  # photons at full brightness
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),  # share of values that become 0 or 1
    "speckle_noise": (0.06, 0.10, 0.12, 0.16, 0.20),  # standard deviation, times the value
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1),  # sigma
    # sigma, largest shift, passes
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    # disk radius, sigma that smooths the disk's rim
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    # radius, sigma
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "zoom_blur": tuple(_zooms(end, 0.01) for end in (1.05, 1.10, 1.15, 1.20, 1.25)),
    # normal layer: mean, deviation; its zoom, threshold, motion radius, motion sigma; mix
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    # weight of the image, weight of the frost, scale of the frost plate
    "frost": ((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
    # weight of the plasma, decay of its roughness
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "brightness": (0.05, 0.10, 0.15, 0.20, 0.30),  # added to V of HSV
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),  # S times a plus b
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),  # about the mean of each channel
    # displacement, its smoothing sigma, jitter of the three affine points
    "elastic_transform": tuple(
        (32 * a, 32 * s, 32 * j)
        for a, s, j in (
            (0, 0, 0.08),
            (0.05, 0.2, 0.07),
            (0.08, 0.06, 0.06),
            (0.1, 0.04, 0.05),
            (0.1, 0.03, 0.03),
        )
    ),
    "pixelate": (0.95, 0.90, 0.85, 0.75, 0.65),  # scale
    "jpeg_compression": (80, 65, 58, 50, 40),  # quality
    # normal layer: mean, deviation; its blur, threshold; strength (water) or mask blur (mud);
    # 0 water, 1 mud
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
}

_IMAGENET: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": (60, 25, 12, 5, 3),
    "impulse_noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "speckle_noise": (0.15, 0.2, 0.35, 0.45, 0.6),
    "gaussian_blur": (1, 2, 3, 4, 6),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "defocus_blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "motion_blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "zoom_blur": (
        _zooms(1.10, 0.01),
        _zooms(1.15, 0.01),
        _zooms(1.20, 0.02),
        _zooms(1.24, 0.02),
        _zooms(1.30, 0.03),
    ),
    "snow": (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "frost": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
    "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
    # 244, not 224, is the number in the published generator.
    "elastic_transform": tuple(
        (244 * a, 244 * s, 244 * j)
        for a, s, j in (
            (2, 0.7, 0.1),
            (2, 0.08, 0.2),
            (0.05, 0.01, 0.02),
            (0.07, 0.01, 0.02),
            (0.12, 0.01, 0.02),
        )
    ),
    "pixelate": (0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg_compression": (25, 18, 15, 10, 7),
    "spatter": (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
}

CONSTANTS: dict[Table, dict[str, tuple[Any, ...]]] = {"cifar": _CIFAR, "imagenet": _IMAGENET}
