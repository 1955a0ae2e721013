"""The shape of `mini`: a CLIPModel whose patch embedding is a convolutional stem."""

from __future__ import annotations

import torch
from torch import nn
from transformers import CLIPConfig, CLIPModel

from ttgcd.vlm.stem import ConvStem, build_stem

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)


def make_config(
    width: int,
    layers: int,
    channels: list[int],
    blocks: list[int],
    dim: int,
    vocabulary: int = 4096,
    side: int = 48,
) -> CLIPConfig:
    heads = width // 32
    vision = {
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "image_size": side,
        "patch_size": 8,
        "projection_dim": dim,
        "stem": {"type": "residual-conv", "channels": channels, "blocks": blocks, "width": width},
    }
    text = {
        "hidden_size": 128,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 40,
        "vocab_size": vocabulary,
        "projection_dim": dim,
        "bos_token_id": vocabulary - 2,
        "eos_token_id": vocabulary - 1,
        "pad_token_id": vocabulary - 1,
    }
    return CLIPConfig(text_config=text, vision_config=vision, projection_dim=dim)


def make_model(config: CLIPConfig, norm: bool = True) -> CLIPModel:
    """A fresh CLIPModel with its stem; ``norm`` adds the batch norms that training needs."""
    model = CLIPModel(config)
    stem = build_stem(config.vision_config.stem)
    for module in stem.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    model.vision_model.embeddings.patch_embedding = add_norm(stem) if norm else stem
    return model


def add_norm(stem: ConvStem) -> ConvStem:
    """Every convolution but the projection gets a batch norm."""
    for parent in list(stem.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Conv2d) and child is not stem.projection:
                bare = nn.Conv2d(
                    child.in_channels, child.out_channels, 3, child.stride, 1, bias=False
                )
                bare.weight = child.weight
                setattr(parent, name, nn.Sequential(bare, nn.BatchNorm2d(child.out_channels)))
    return stem


def fold_norm(stem: ConvStem) -> ConvStem:
    """The reverse: batch norms become part of the convolutions' weights and biases."""
    stem.eval()
    for parent in list(stem.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Sequential) and isinstance(child[-1], nn.BatchNorm2d):
                setattr(parent, name, torch.nn.utils.fuse_conv_bn_eval(*child))
    return stem


def encode_images(model: CLIPModel, images: torch.Tensor) -> torch.Tensor:
    """RGB in 0..1, any side that is a multiple of 8 -> unit vectors."""
    mean, std = images.new_tensor(MEAN).view(3, 1, 1), images.new_tensor(STD).view(3, 1, 1)
    pixels = ((images - mean) / std).contiguous(memory_format=torch.channels_last)
    pooled = model.vision_model(pixel_values=pixels, interpolate_pos_encoding=True).pooler_output
    return nn.functional.normalize(model.visual_projection(pooled), dim=-1)
