"""What a checkpoint's ``config.json`` says about its towers, as the towers themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ttgcd.errors import InputError
from ttgcd.vlm.towers import DualEncoder, ImageTower, Shape, TextTower

Family = Literal["clip", "siglip"]

# What a config leaves out has these values, as in transformers.
_COMMON = {"intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
_DEFAULTS: dict[Family, dict[str, dict[str, Any]]] = {
    "clip": {
        "vision_config": {
            **_COMMON,
            "hidden_size": 768,
            "image_size": 224,
            "patch_size": 32,
            "hidden_act": "quick_gelu",
            "layer_norm_eps": 1e-5,
        },
        "text_config": {
            "hidden_size": 512,
            "intermediate_size": 2048,
            "num_hidden_layers": 12,
            "num_attention_heads": 8,
            "vocab_size": 49408,
            "max_position_embeddings": 77,
            "eos_token_id": 49407,
            "hidden_act": "quick_gelu",
            "layer_norm_eps": 1e-5,
        },
    },
    "siglip": {
        "vision_config": {
            **_COMMON,
            "hidden_size": 768,
            "image_size": 224,
            "patch_size": 16,
            "hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-6,
        },
        "text_config": {
            **_COMMON,
            "hidden_size": 768,
            "vocab_size": 32000,
            "max_position_embeddings": 64,
            "hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-6,
        },
    },
}


class Architecture:
    """Family and sizes of a model, from the dictionary in ``config.json``."""

    def __init__(self, family: Family, settings: Mapping[str, Any]) -> None:
        self.family = family
        self.vision = self._section("vision_config", settings)
        self.text = self._section("text_config", settings)
        self.projection = int(settings.get("projection_dim", 512))

    def _section(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        # Old configs repeat a section as "..._dict"; where they differ, that one counts.
        given = {**(settings.get(name) or {}), **(settings.get(f"{name}_dict") or {})}
        section = {**_DEFAULTS[self.family][name], **given}
        for key, value in section.items():
            default = _DEFAULTS[self.family][name].get(key)
            if isinstance(default, int) and not isinstance(value, int):
                raise InputError(f"config.json: {name}.{key} must be a whole number, got {value!r}")
        return section

    @property
    def image_size(self) -> int:
        return self.vision["image_size"]

    @property
    def stem(self) -> Mapping[str, Any] | None:
        return self.vision.get("stem") or None

    def build(self) -> DualEncoder:
        """The towers, their weights not yet set."""
        clip = self.family == "clip"
        vision, text = _shape(self.vision), _shape(self.text)
        projection = None if clip else self.text.get("projection_size") or text.width
        return DualEncoder(
            ImageTower(
                vision, self.image_size, self.vision["patch_size"], clip=clip, stem=self.stem
            ),
            TextTower(
                text,
                self.text["vocab_size"],
                self.text["max_position_embeddings"],
                end=self.text["eos_token_id"] if clip else None,
                projection=projection,
            ),
            (vision.width, text.width, self.projection),
        )


def _shape(section: Mapping[str, Any]) -> Shape:
    return Shape(
        width=section["hidden_size"],
        inner=section["intermediate_size"],
        layers=section["num_hidden_layers"],
        heads=section["num_attention_heads"],
        activation=section["hidden_act"],
        epsilon=float(section["layer_norm_eps"]),
    )
