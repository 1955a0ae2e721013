"""The convolutional stem that the embedded model has in place of CLIP's patch convolution.

A checkpoint announces it in its config as ``vision_config.stem``; the loader then puts
``build_stem(stem)`` where ``CLIPModel`` keeps ``vision_model.embeddings.patch_embedding``.
Everything after the stem is ``CLIPModel``'s own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ttgcd.errors import InputError


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(x))), then relu; the shape stays."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.conv2(torch.relu(self.conv1(x))))


class ConvStem(nn.Module):
    """Stages of one stride-2 3x3 convolution and some residual blocks, then a 1x1 projection.

    With s stages an image of side S gives a grid of S / 2**s tokens a side, so ``patch_size`` in
    the config is 2**s. Batch normalisation, used in training only, is folded into these weights.
    """

    def __init__(self, channels: Sequence[int], blocks: Sequence[int], width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, count in zip((3, *channels), channels, blocks, strict=False):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
            layers += [ResidualBlock(after) for _ in range(count)]
        self.layers = nn.Sequential(*layers)
        self.projection = nn.Conv2d(channels[-1], width, 1)

    @property
    def weight(self) -> torch.Tensor:
        """CLIPVisionEmbeddings reads the dtype of its patch embedding from ``weight``."""
        return self.projection.weight

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.projection(self.layers(pixels))


def build_stem(stem: Mapping[str, Any]) -> ConvStem:
    """The module that ``vision_config.stem`` describes.

    ``{"type": "residual-conv", "channels": [...], "blocks": [...], "width": hidden_size}``
    """
    if stem.get("type") != "residual-conv":
        raise InputError(
            f"vision_config.stem.type is {stem.get('type')!r}; this version knows 'residual-conv'"
        )
    channels, blocks = list(stem["channels"]), list(stem["blocks"])
    if not channels or len(channels) != len(blocks):
        raise InputError(
            "vision_config.stem needs as many 'blocks' as 'channels' and at least one of each, "
            f"got channels={channels} blocks={blocks}"
        )
    return ConvStem(channels, blocks, int(stem["width"]))
