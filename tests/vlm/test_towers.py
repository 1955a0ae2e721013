"""The towers can be cut, and read what configs of any age say."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import CLIPConfig, CLIPModel, SiglipConfig, SiglipModel

from tests.vlm.checkpoints import randomize
from ttgcd.errors import InputError
from ttgcd.vlm.architecture import Architecture
from ttgcd.vlm.towers import DualEncoder

SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
}
SETTINGS = {
    "projection_dim": 16,
    "vision_config": {**SHAPE, "image_size": 32, "patch_size": 8},
    "text_config": {**SHAPE, "vocab_size": 50, "max_position_embeddings": 12, "eos_token_id": 49},
}


def tower(family: str, **changes: object) -> DualEncoder:
    model = Architecture(family, {**SETTINGS, **changes}).build().eval()  # type: ignore[arg-type]
    randomize(model, seed=1)
    return model.requires_grad_(False)


@pytest.mark.parametrize("family", ["clip", "siglip"])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_tower_cut_in_two_gives_what_it_gives_whole(family: str, at: int) -> None:
    image = tower(family).vision_model
    pixels = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    below = image.run(image.embed(pixels), 0, at)
    assert torch.equal(image.pool(image.run(below, at, image.depth)), image(pixels))


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu", "gelu_pytorch_tanh"])
def test_working_in_place_changes_no_bit(activation: str) -> None:
    vision = {**SETTINGS["vision_config"], "hidden_act": activation}
    image = tower("clip", vision_config=vision).vision_model
    pixels = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        without = image(pixels)
    with torch.enable_grad():
        assert torch.equal(without, image(pixels))


@pytest.mark.parametrize(
    ("family", "config", "kind"),
    [("clip", CLIPConfig, CLIPModel), ("siglip", SiglipConfig, SiglipModel)],
)
def test_what_a_config_leaves_out_is_transformers_default(
    family: str, config: type, kind: type
) -> None:
    with torch.device("meta"):
        theirs = kind(config()).state_dict()
        ours = Architecture(family, {}).build().state_dict()  # type: ignore[arg-type]
    theirs.pop("logit_bias", None)  # SigLIP's, of no use without its loss
    shapes = [{key: tuple(value.shape) for key, value in part.items()} for part in (ours, theirs)]
    assert {k: v or (1,) for k, v in shapes[0].items()} == {
        k: v or (1,) for k, v in shapes[1].items()
    }
    defaults = Architecture(family, {})  # type: ignore[arg-type]
    for section, values in (("vision", defaults.vision), ("text", defaults.text)):
        reference = getattr(config(), f"{section}_config")
        for key in ("hidden_act", "layer_norm_eps", "num_attention_heads"):
            assert values[key] == getattr(reference, key), f"{section}.{key}"


def test_sections_of_old_configs_under_their_second_name_count() -> None:
    old = {"vision_config": None, "vision_config_dict": SETTINGS["vision_config"]}
    assert Architecture("clip", {**SETTINGS, **old}).image_size == 32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "mish"}, "mish"),
        ({"num_attention_heads": 5}, "5 attention heads"),
        ({"hidden_size": "wide"}, "whole number"),
    ],
)
def test_a_config_it_cannot_follow_is_refused(change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Architecture(
            "clip", {**SETTINGS, "vision_config": {**SETTINGS["vision_config"], **change}}
        ).build()


def test_only_the_patch_convolution_of_siglip_has_a_bias() -> None:
    parts = [tower(f).vision_model.embeddings.patch_embedding for f in ("clip", "siglip")]
    assert [isinstance(part, nn.Conv2d) and part.bias is not None for part in parts] == [
        False,
        True,
    ]
