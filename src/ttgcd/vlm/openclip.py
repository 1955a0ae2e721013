"""Checkpoints in OpenCLIP's layout (BioCLIP-2, LAION's, DFN) under CLIPModel's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from ttgcd.errors import InputError

# Settings that CLIPModel reproduces, or that matter in training only. Anything else changes the
# computation, and is refused rather than ignored.
_MODEL = "embed_dim vision_cfg text_cfg quick_gelu custom_text init_logit_scale"
_VISION = "image_size layers width patch_size head_width mlp_ratio patch_dropout"
_TEXT = "context_length vocab_size width heads layers mlp_ratio"
_KNOWN = {"model_cfg": _MODEL.split(), "vision_cfg": _VISION.split(), "text_cfg": _TEXT.split()}

_BLOCK = {
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "attn.out_proj": "self_attn.out_proj",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
_PLAIN = {
    "logit_scale": "logit_scale",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "ln_final.weight": "text_model.final_layer_norm.weight",
    "ln_final.bias": "text_model.final_layer_norm.bias",
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.ln_pre.weight": "vision_model.pre_layrnorm.weight",
    "visual.ln_pre.bias": "vision_model.pre_layrnorm.bias",
    "visual.ln_post.weight": "vision_model.post_layernorm.weight",
    "visual.ln_post.bias": "vision_model.post_layernorm.bias",
}
# OpenCLIP multiplies features from the left, a Linear holds the transpose.
_TRANSPOSED = {
    "text_projection": "text_projection.weight",
    "visual.proj": "visual_projection.weight",
}
_RESBLOCK = re.compile(r"(visual\.)?transformer\.resblocks\.(\d+)\.(.+)\.(weight|bias)")
_IN_PROJ = re.compile(r"(visual\.)?transformer\.resblocks\.(\d+)\.attn\.in_proj_(weight|bias)")


def clip_config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """CLIP's ``config.json`` that computes what open_clip_config.json describes."""
    model = settings.get("model_cfg")
    try:
        vision, text = model["vision_cfg"], model["text_cfg"]  # type: ignore[index]
        for section, values in (("model_cfg", model), ("vision_cfg", vision), ("text_cfg", text)):
            for key, value in values.items():  # type: ignore[union-attr]
                if key not in _KNOWN[section] and value not in (None, False):
                    raise InputError(
                        f"open_clip_config.json: {section}.{key} = {value!r} is not supported; "
                        "only plain CLIP vision transformers are"
                    )
        # OpenCLIP's default is the exact GELU; OpenAI's weights need the quick one.
        activation = "quick_gelu" if model.get("quick_gelu") else "gelu"  # type: ignore[union-attr]
        vocabulary = text["vocab_size"]
        return {
            "projection_dim": model["embed_dim"],  # type: ignore[index]
            "vision_config": {
                "hidden_size": vision["width"],
                "intermediate_size": int(vision["width"] * vision.get("mlp_ratio", 4.0)),
                "num_hidden_layers": vision["layers"],
                "num_attention_heads": vision["width"] // vision.get("head_width", 64),
                "image_size": vision["image_size"],
                "patch_size": vision["patch_size"],
                "hidden_act": activation,
            },
            "text_config": {
                "hidden_size": text["width"],
                "intermediate_size": int(text["width"] * text.get("mlp_ratio", 4.0)),
                "num_hidden_layers": text["layers"],
                "num_attention_heads": text["heads"],
                "max_position_embeddings": text["context_length"],
                "vocab_size": vocabulary,
                "hidden_act": activation,
                # OpenCLIP pools at the highest id, which is the end token, the last of the
                # vocabulary; what follows it is hidden by the causal mask.
                "bos_token_id": vocabulary - 2,
                "eos_token_id": vocabulary - 1,
                "pad_token_id": 0,
            },
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"open_clip_config.json lacks or mistypes a setting: {error!r}") from error


def clip_tensors(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """OpenCLIP's weights under CLIPModel's names; what CLIPModel does not have is left out."""
    mapped: dict[str, torch.Tensor] = {}
    for key, value in tensors.items():
        # The text tower of a "custom_text" model has a prefix of its own.
        key = key.removeprefix("text.")
        if key in _PLAIN:
            mapped[_PLAIN[key]] = value
        elif key in _TRANSPOSED:
            mapped[_TRANSPOSED[key]] = value.T.contiguous()
        elif match := _IN_PROJ.fullmatch(key):
            for part, chunk in zip("qkv", value.chunk(3)):
                mapped[f"{_layer(match)}.self_attn.{part}_proj.{match[3]}"] = chunk.contiguous()
        elif (match := _RESBLOCK.fullmatch(key)) and match[3] in _BLOCK:
            mapped[f"{_layer(match)}.{_BLOCK[match[3]]}.{match[4]}"] = value
    return mapped


def _layer(match: re.Match[str]) -> str:
    return f"{'vision' if match[1] else 'text'}_model.encoder.layers.{match[2]}"
