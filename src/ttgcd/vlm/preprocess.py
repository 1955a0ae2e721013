"""From decoded pixels to what a checkpoint was trained on: resize and crop, in uint8.

Rescaling and mean/std are left to the encoder, on its device, so a batch stays four times smaller
on its way there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from ttgcd.errors import InputError

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)

# PIL's numbers, which preprocessor_config.json stores.
_RESAMPLE = {2: "bilinear", 3: "bicubic"}

# A 1 x 10,000 image would be blown up to 224 x 2,240,000 only to be cropped: beyond this ratio the
# ends, which the crop throws away, are cut first.
_MAX_RATIO = 8


@dataclass(frozen=True)
class Preprocess:
    """Resize to `size` and crop.

    With `crop` the short side becomes `resize` (default `size`) and the centre `size` x `size` is
    kept, as CLIP does; without it the image is squashed to a square, as SigLIP does.
    `mean`, `std` and `rescale` are applied by the encoder.
    """

    size: int = 224
    crop: bool = True
    mean: tuple[float, ...] = CLIP_MEAN
    std: tuple[float, ...] = CLIP_STD
    resize: int | None = None
    interpolation: str = "bicubic"
    rescale: float = 1 / 255

    def __call__(self, images: np.ndarray | Sequence[np.ndarray]) -> torch.Tensor:
        """uint8 HWC -> uint8 CHW; uint8 NHWC, or a list of HWC of any sizes -> uint8 NCHW."""
        if isinstance(images, np.ndarray):
            if images.ndim == 3:
                return self._batch(images[None])[0]
            return self._batch(images)
        if not images:
            return torch.empty((0, 3, self.size, self.size), dtype=torch.uint8)
        return torch.cat([self._batch(image[None]) for image in images])

    def _batch(self, images: np.ndarray) -> torch.Tensor:
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
            raise InputError(
                "images must be uint8 of shape (height, width, 3) or (n, height, width, 3), got "
                f"{images.dtype} of shape {images.shape}"
            )
        if 0 in images.shape[1:3]:
            raise InputError(f"an image of shape {images.shape[1:]} has no pixels")
        if self.crop:
            images = _cut_ends(images)
        # A view of NHWC memory: interpolate has a fast path for uint8 in channels-last layout.
        pixels = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2)
        target = self._target(pixels.shape[2], pixels.shape[3])
        if target != tuple(pixels.shape[2:]) and len(pixels):
            pixels = F.interpolate(
                pixels, size=target, mode=self.interpolation, antialias=True, align_corners=False
            )
        if self.crop:
            pixels = _centre(_centre(pixels, 2, self.size), 3, self.size)
        return pixels.contiguous(memory_format=torch.contiguous_format)

    def _target(self, height: int, width: int) -> tuple[int, int]:
        if not self.crop:
            return self.size, self.size
        short = self.resize or self.size
        if width <= height:
            return int(short * height / width), short
        return short, int(short * width / height)


def _cut_ends(images: np.ndarray) -> np.ndarray:
    height, width = images.shape[1:3]
    longest = _MAX_RATIO * min(height, width)
    if height > longest:
        top = (height - longest) // 2
        return images[:, top : top + longest]
    if width > longest:
        left = (width - longest) // 2
        return images[:, :, left : left + longest]
    return images


def _centre(pixels: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """Crop an axis about its centre, or pad it with black, the odd pixel going before."""
    have = pixels.shape[axis]
    if have >= size:
        return pixels.narrow(axis, (have - size) // 2, size)
    before = -((have - size) // 2)
    after = size - have - before
    # F.pad lists the last axis first.
    return F.pad(pixels, (before, after) if axis == 3 else (0, 0, before, after))


def from_transformers(config: Mapping[str, Any]) -> Preprocess:
    """Read the dictionary that transformers keeps in preprocessor_config.json."""
    size = config.get("size", 224)
    squash = isinstance(size, Mapping) and "shortest_edge" not in size
    crop = config.get("do_center_crop", "crop_size" in config)
    resample = config.get("resample", 3)
    if resample not in _RESAMPLE:
        raise InputError(
            f"preprocessor_config.json asks for resample={resample}; "
            "only bicubic (3) and bilinear (2) are supported"
        )
    if not config.get("do_resize", True):
        raise InputError("preprocessor_config.json switches do_resize off, which is not supported")
    output = _side(config.get("crop_size", size)) if crop else _side(size)
    if not (crop or squash) or (crop and squash and output != _side(size)):
        raise InputError(
            f"preprocessor_config.json: size {size} with do_center_crop={crop} does not give "
            "square images of one size"
        )
    normalize = config.get("do_normalize", True)
    return Preprocess(
        size=output,
        crop=not squash,
        mean=tuple(config.get("image_mean", CLIP_MEAN)) if normalize else (0.0,) * 3,
        std=tuple(config.get("image_std", CLIP_STD)) if normalize else (1.0,) * 3,
        resize=_side(size),
        interpolation=_RESAMPLE[resample],
        rescale=config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 1.0,
    )


def from_open_clip(config: Mapping[str, Any], image_size: int) -> Preprocess:
    """Read ``preprocess_cfg`` of open_clip_config.json; what it leaves out is CLIP's."""
    mode = config.get("resize_mode", "shortest")
    interpolation = config.get("interpolation", "bicubic")
    if mode not in ("shortest", "squash") or interpolation not in _RESAMPLE.values():
        raise InputError(
            f"open_clip_config.json asks for resize_mode={mode!r}, interpolation={interpolation!r};"
            " supported: 'shortest' or 'squash', 'bicubic' or 'bilinear'"
        )
    return Preprocess(
        size=image_size,
        crop=mode == "shortest",
        mean=tuple(config.get("mean", CLIP_MEAN)),
        std=tuple(config.get("std", CLIP_STD)),
        interpolation=interpolation,
    )


def _side(size: int | Mapping[str, int]) -> int:
    """The side in any spelling: 224, {"shortest_edge": 224}, {"height": 224, "width": 224}."""
    if isinstance(size, Mapping):
        if size.get("height") != size.get("width"):
            raise InputError(f"preprocessor_config.json asks for {dict(size)}; only squares work")
        side = size.get("shortest_edge") or size.get("height")
        if side is None:
            raise InputError(f"preprocessor_config.json: cannot read the size {dict(size)}")
        return int(side)
    return int(size)
