"""One call for all nineteen corruptions."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ttgcd.corruptions import blur, digital, noise, weather
from ttgcd.corruptions.constants import ALL_KINDS, CONSTANTS, SEVERITIES, Table
from ttgcd.errors import InputError

_Corruption = Callable[[np.ndarray, Any, np.random.Generator], np.ndarray]

_FUNCTIONS: dict[str, _Corruption] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "glass_blur": blur.glass_blur,
    "defocus_blur": blur.defocus_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "spatter": weather.spatter,
    "brightness": digital.brightness,
    "saturate": digital.saturate,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
}

# Below this shortest side an image gets the constants of the 32-pixel sets.
_LARGE = 96
_SMALLEST = 8


def constants_for(height: int, width: int) -> Table:
    """Which table of constants ``"auto"`` means for an image of this size."""
    return "imagenet" if min(height, width) >= _LARGE else "cifar"


def corrupt(
    image: np.ndarray,
    kind: str,
    severity: int,
    seed: int | Sequence[int],
    constants: Literal["auto", "cifar", "imagenet"] = "auto",
) -> np.ndarray:
    """Corrupt one image (uint8, height x width x 3); the input is left as it is.

    All randomness comes from ``seed``, mixed with the kind and the severity: give every image
    its own, e.g. ``(run_seed, image_number)``. The same arguments give the same bytes in any
    process, in any thread and in any order.
    """
    _check(image, kind, severity)
    if constants == "auto":
        table = constants_for(*image.shape[:2])
    elif constants in CONSTANTS:
        table = constants
    else:
        raise InputError(
            f"unknown table of constants {constants!r}: use 'auto', 'cifar' or 'imagenet'"
        )
    rng = np.random.default_rng([*_seeds(seed), zlib.crc32(kind.encode()), severity])
    with np.errstate(over="ignore"):
        result = _FUNCTIONS[kind](image / 255.0, CONSTANTS[table][kind][severity - 1], rng)
    # The published sets truncate. The slack keeps a value that is whole up to rounding error
    # whole, so that the last bit of floating-point arithmetic never decides a byte.
    return (np.clip(result, 0, 1) * 255 + 1e-6).astype(np.uint8)


def _check(image: np.ndarray, kind: str, severity: int) -> None:
    if kind not in _FUNCTIONS:
        raise InputError(f"unknown corruption {kind!r}: choose from {', '.join(ALL_KINDS)}")
    if severity not in SEVERITIES:
        raise InputError(f"severity is {severity!r}: it must be 1, 2, 3, 4 or 5")
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        raise InputError("the image to corrupt must be a uint8 array with values 0 to 255")
    if image.ndim != 3 or image.shape[2] != 3 or min(image.shape[:2]) < _SMALLEST:
        raise InputError(
            f"the image to corrupt has shape {image.shape}: it must be height x width x 3 with "
            f"sides of at least {_SMALLEST} pixels (convert grey images to RGB first)"
        )


def _seeds(seed: int | Sequence[int]) -> list[int]:
    numbers = [int(s) for s in seed] if isinstance(seed, Sequence | np.ndarray) else [int(seed)]
    if not numbers or min(numbers) < 0:
        raise InputError(f"seed is {seed!r}: it must be one or more whole numbers from 0 up")
    return numbers
