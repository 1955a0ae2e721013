"""Small random checkpoints in the real formats, written to disk by the tests themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import (
    CLIPConfig,
    CLIPModel,
    CLIPTokenizer,
    PreTrainedTokenizerFast,
    SiglipConfig,
    SiglipModel,
)

CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]
MERGES = [("p", "h"), ("ph", "o"), ("pho", "t"), ("phot", "o</w>"), ("o", "f</w>"), ("a", "t</w>")]


def clip_vocabulary() -> dict[str, int]:
    """All bytes, all bytes that end a word, the merges, and last CLIP's two special tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*letters, *(letter + "</w>" for letter in letters), *map("".join, MERGES)]
    return {token: i for i, token in enumerate([*tokens, "<|startoftext|>", "<|endoftext|>"])}


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def randomize(model: nn.Module, seed: int) -> None:
    """Weights that make every part count: norms off 1, biases off 0, features well apart."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in ("logit_scale", "logit_bias"):
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            norm_weight = "norm" in name and name.endswith("weight")
            parameter.copy_(1 + 0.2 * noise if norm_weight else 0.15 * noise)


def write_clip_tokenizer(folder: Path, length: int = 77) -> None:
    """vocab.json and merges.txt, as OpenAI's repositories hold them, and tokenizer.json."""
    tokenizer = CLIPTokenizer(vocab=clip_vocabulary(), merges=MERGES, model_max_length=length)
    tokenizer.save_pretrained(folder)
    write_json(folder / "vocab.json", clip_vocabulary())
    lines = ["#version: 0.2", *(" ".join(pair) for pair in MERGES)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_clip(
    folder: Path,
    *,
    size: int = 32,
    activation: str = "quick_gelu",
    stem: dict[str, Any] | None = None,
    logit_scale: float = 4.6052,
    seed: int = 0,
) -> Path:
    """A CLIP checkpoint of transformers' layout: two layers, 16-wide features, `size` px images."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = len(clip_vocabulary())
    config = CLIPConfig(
        projection_dim=16,
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": size,
            "patch_size": 8,
            "hidden_act": activation,
            **({"stem": stem} if stem else {}),
        },
        text_config={
            "hidden_size": 24,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "vocab_size": vocabulary,
            "hidden_act": activation,
            "bos_token_id": vocabulary - 2,
            "eos_token_id": vocabulary - 1,
        },
    )
    model = CLIPModel(config)
    if stem:
        from ttgcd.vlm.stem import build_stem

        model.vision_model.embeddings.patch_embedding = build_stem(stem)
    randomize(model, seed)
    model.logit_scale.data.fill_(logit_scale)
    model.save_pretrained(folder)
    write_clip_tokenizer(folder)
    # The spelling of openai/clip-vit-base-patch16: plain numbers.
    write_json(
        folder / "preprocessor_config.json",
        {
            "crop_size": size,
            "do_center_crop": True,
            "do_normalize": True,
            "do_resize": True,
            "image_processor_type": "CLIPImageProcessor",
            "image_mean": CLIP_MEAN,
            "image_std": CLIP_STD,
            "resample": 3,
            "size": size,
        },
    )
    return folder


def write_siglip(folder: Path, *, size: int = 32, seed: int = 0) -> Path:
    """A SigLIP checkpoint of transformers' layout with a unigram tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁photo", -1.0)]
    pieces += [(letter, -3.0) for letter in letters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"[!-/:-@\[-`{-~]"), ""),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="</s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings |= {"tokenizer_class": "SiglipTokenizer", "model_input_names": ["input_ids"]}
    write_json(folder / "tokenizer_config.json", settings)
    shape = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    model = SiglipModel(
        SiglipConfig(
            vision_config={**shape, "image_size": size, "patch_size": 8},
            text_config={
                **shape,
                "vocab_size": len(pieces),
                "max_position_embeddings": 24,
                "bos_token_id": 0,
                "eos_token_id": 1,
                "pad_token_id": 1,
            },
        )
    )
    randomize(model, seed)
    model.logit_scale.data.fill_(4.7)
    model.logit_bias.data.fill_(-12.0)
    model.save_pretrained(folder)
    write_json(
        folder / "preprocessor_config.json",
        {
            "do_normalize": True,
            "do_rescale": True,
            "do_resize": True,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
            "image_processor_type": "SiglipImageProcessor",
            "resample": 3,
            "rescale_factor": 1 / 255,
            "size": {"height": size, "width": size},
        },
    )
    return folder


def write_open_clip(
    folder: Path, *, quick_gelu: bool = False, custom_text: bool = False, seed: int = 0
) -> Path:
    """A checkpoint of OpenCLIP's layout (imageomics/bioclip-2): 32 px, 16-wide features."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = len(clip_vocabulary())
    vision = {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 8}
    text = {"context_length": 77, "vocab_size": vocabulary, "width": 24, "heads": 3, "layers": 2}
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> torch.Tensor:
        return 0.15 * torch.randn(shape, generator=generator)

    def norm(name: str, width: int) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": 1 + noise(width), f"{name}.bias": noise(width)}

    def block(name: str, width: int) -> dict[str, torch.Tensor]:
        return {
            **norm(f"{name}.ln_1", width),
            **norm(f"{name}.ln_2", width),
            f"{name}.attn.in_proj_weight": noise(3 * width, width),
            f"{name}.attn.in_proj_bias": noise(3 * width),
            f"{name}.attn.out_proj.weight": noise(width, width),
            f"{name}.attn.out_proj.bias": noise(width),
            f"{name}.mlp.c_fc.weight": noise(4 * width, width),
            f"{name}.mlp.c_fc.bias": noise(4 * width),
            f"{name}.mlp.c_proj.weight": noise(width, 4 * width),
            f"{name}.mlp.c_proj.bias": noise(width),
        }

    prefix = "text." if custom_text else ""
    tensors = {
        "logit_scale": torch.tensor(4.5),
        "visual.class_embedding": noise(32),
        "visual.positional_embedding": noise(17, 32),
        "visual.proj": noise(32, 16),
        "visual.conv1.weight": noise(32, 3, 8, 8),
        **norm("visual.ln_pre", 32),
        **norm("visual.ln_post", 32),
        **block("visual.transformer.resblocks.0", 32),
        **block("visual.transformer.resblocks.1", 32),
        f"{prefix}token_embedding.weight": noise(vocabulary, 24),
        f"{prefix}positional_embedding": noise(77, 24),
        f"{prefix}text_projection": noise(24, 16),
        **norm(f"{prefix}ln_final", 24),
        **block(f"{prefix}transformer.resblocks.0", 24),
        **block(f"{prefix}transformer.resblocks.1", 24),
    }
    save_file(tensors, folder / "open_clip_model.safetensors")
    model: dict[str, Any] = {"embed_dim": 16, "vision_cfg": vision, "text_cfg": text}
    if quick_gelu:
        model["quick_gelu"] = True
    if custom_text:
        model["custom_text"] = True
    preprocess = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25]}
    write_json(folder / "open_clip_config.json", {"model_cfg": model, "preprocess_cfg": preprocess})
    write_clip_tokenizer(folder)
    return folder
