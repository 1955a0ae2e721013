from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F
from transformers import CLIPTokenizer

from tests.vlm.checkpoints import write_json, write_open_clip
from ttgcd.errors import InputError
from ttgcd.vlm import load_vlm
from ttgcd.vlm.architecture import Architecture
from ttgcd.vlm.base import layer_norms
from ttgcd.vlm.openclip import clip_config

TEXTS = ["a photo of a cat.", "Two Dogs, at night!", "x"]
BIOCLIP_2 = {
    "model_cfg": {
        "embed_dim": 768,
        "vision_cfg": {"image_size": 224, "layers": 24, "width": 1024, "patch_size": 14},
        "text_cfg": {
            "context_length": 77,
            "vocab_size": 49408,
            "width": 768,
            "heads": 12,
            "layers": 12,
        },
    },
}


def norm(x, tensors, name):
    return F.layer_norm(x, x.shape[-1:], tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def transformer(x, tensors, prefix, heads, activation, mask=None):
    """OpenCLIP's residual blocks, from its own tensors and torch's own attention."""
    for i in range(2):
        name = f"{prefix}transformer.resblocks.{i}"
        attention = nn.MultiheadAttention(x.shape[-1], heads, batch_first=True)
        attention.load_state_dict(
            {
                key: tensors[f"{name}.attn.{key}"]
                for key in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
            }
        )
        y = norm(x, tensors, f"{name}.ln_1")
        x = x + attention(y, y, y, need_weights=False, attn_mask=mask)[0]
        y = norm(x, tensors, f"{name}.ln_2")
        y = F.linear(y, tensors[f"{name}.mlp.c_fc.weight"], tensors[f"{name}.mlp.c_fc.bias"])
        y = activation(y)
        x = x + F.linear(
            y, tensors[f"{name}.mlp.c_proj.weight"], tensors[f"{name}.mlp.c_proj.bias"]
        )
    return x


def reference_images(pixels, tensors, activation):
    x = F.conv2d(pixels, tensors["visual.conv1.weight"], stride=8).flatten(2).permute(0, 2, 1)
    x = torch.cat([tensors["visual.class_embedding"].expand(len(x), 1, -1), x], dim=1)
    x = norm(x + tensors["visual.positional_embedding"], tensors, "visual.ln_pre")
    x = transformer(x, tensors, "visual.", 4, activation)
    return norm(x[:, 0], tensors, "visual.ln_post") @ tensors["visual.proj"]


def reference_texts(ids, tensors, activation):
    x = tensors["token_embedding.weight"][ids] + tensors["positional_embedding"]
    mask = torch.full((77, 77), float("-inf")).triu(1)
    x = norm(transformer(x, tensors, "", 3, activation, mask), tensors, "ln_final")
    return x[torch.arange(len(x)), ids.argmax(dim=-1)] @ tensors["text_projection"]


def open_clip_ids(texts, folder):
    """OpenCLIP's token layout: start, text, end, zeros up to the context length."""
    tokenizer = CLIPTokenizer.from_pretrained(folder)
    ids = torch.zeros(len(texts), 77, dtype=torch.long)
    for row, text in zip(ids, texts):
        tokens = tokenizer(text)["input_ids"]
        row[: len(tokens)] = torch.tensor(tokens)
    return ids


@pytest.mark.parametrize("custom_text", [False, True], ids=["CLIP", "CustomTextCLIP"])
@pytest.mark.parametrize("quick_gelu", [False, True], ids=["gelu", "quick_gelu"])
def test_features_are_those_of_open_clips_computation(quick_gelu, custom_text, tmp_path):
    folder = write_open_clip(tmp_path, quick_gelu=quick_gelu, custom_text=custom_text)
    tensors = {
        key.removeprefix("text."): value
        for key, value in load_file(folder / "open_clip_model.safetensors").items()
    }
    activation = (lambda x: x * torch.sigmoid(1.702 * x)) if quick_gelu else F.gelu
    vlm = load_vlm(str(folder))
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    mean = torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    std = torch.tensor([0.2, 0.3, 0.25]).view(3, 1, 1)
    with torch.no_grad():
        expected = reference_images((pixels - mean) / std, tensors, activation)
        ours = vlm.encode_images(vlm.preprocess(images), normalize=False)
        assert torch.allclose(ours, expected, atol=1e-5)
        expected = reference_texts(open_clip_ids(TEXTS, folder), tensors, activation)
        assert torch.allclose(vlm.encode_texts(TEXTS, normalize=False), expected, atol=1e-5)
    assert vlm.logit_scale == pytest.approx(float(np.exp(4.5)))


def test_bioclip_2_is_a_large_clip_with_the_exact_gelu():
    config = clip_config(BIOCLIP_2)
    vision, text = config["vision_config"], config["text_config"]
    assert (vision["hidden_act"], text["hidden_act"]) == ("gelu", "gelu")
    assert (vision["num_attention_heads"], vision["intermediate_size"]) == (16, 4096)
    assert (text["eos_token_id"], text["max_position_embeddings"]) == (49407, 77)
    with torch.device("meta"):
        model = Architecture("clip", config).build()
    assert sum(p.numel() for p in layer_norms(model.vision_model).values()) == 102_400
    # The size of ViT-L/14.
    assert sum(p.numel() for p in model.parameters()) == 427_616_513


def test_a_checkpoint_without_one_block_is_refused(tmp_path):
    folder = write_open_clip(tmp_path)
    path = folder / "open_clip_model.safetensors"
    tensors = load_file(path)
    del tensors["visual.transformer.resblocks.1.attn.in_proj_weight"]
    save_file(tensors, path)
    with pytest.raises(InputError, match=r"missing.*layers\.1\.self_attn"):
        load_vlm(str(folder))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("vision_cfg", "timm_model_name", "vit_base_patch16_siglip_224"),
        ("vision_cfg", "no_ln_pre", True),
        ("vision_cfg", "pool_type", "avg"),
        ("text_cfg", "hf_model_name", "bert-base-uncased"),
        ("text_cfg", "act_kwargs", {"approximate": "tanh"}),
        ("text_cfg", "no_causal_mask", True),
    ],
)
def test_computations_it_does_not_know_are_refused_by_name(section, key, value):
    settings = json.loads(json.dumps(BIOCLIP_2))
    settings["model_cfg"][section][key] = value
    with pytest.raises(InputError, match=f"{section}.{key}"):
        clip_config(settings)


@pytest.mark.parametrize(
    "settings", [{}, {"model_cfg": []}, {"model_cfg": {"vision_cfg": {}, "text_cfg": {}}}]
)
def test_a_damaged_config_is_an_input_error(settings, tmp_path):
    folder = write_open_clip(tmp_path)
    write_json(folder / "open_clip_config.json", settings)
    with pytest.raises(InputError, match="open_clip_config"):
        load_vlm(str(folder))
