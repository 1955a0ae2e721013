"""Random views of preprocessed images: a crop at 7/8 of the side, resized back, half mirrored."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

# 224 of 256 pixels, the crop of the SimGCD recipe.
CROP = 0.875


def random_view(images: torch.Tensor, rng: np.random.Generator, crop: float = CROP) -> torch.Tensor:
    """One view of uint8 images (n, 3, S, S), each with its own place and mirroring."""
    n = len(images)
    room = 1.0 - crop
    shift = rng.uniform(-room, room, size=(n, 2))
    mirror = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    transform = np.zeros((n, 2, 3), np.float32)
    transform[:, 0, 0] = crop * mirror
    transform[:, 1, 1] = crop
    transform[:, :, 2] = shift
    grid = F.affine_grid(torch.from_numpy(transform), list(images.shape), align_corners=False)
    pixels = images.cpu().float()
    view = F.grid_sample(pixels, grid, padding_mode="border", align_corners=False)
    return view.round().clamp(0, 255).to(torch.uint8)
