"""What the benchmarks run on: a model of ViT-B/16's shape, and photographs."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

NAMES = ",".join(f"thing {i}" for i in range(50))


def vit_b16(folder: Path, text_tower: Literal["mini", "clip"] = "mini") -> Path:
    """CLIP with ViT-B/16's image tower, random weights, in the real format.

    The tokenizer is that of the embedded model, so nothing has to be downloaded; so is the size of
    the text tower, where it reads fifty names once and no vocabulary.
    """
    import torch
    from transformers import CLIPConfig, CLIPModel

    from ttgcd.data import path

    mini = path("mini")
    text = json.loads((mini / "config.json").read_text(encoding="utf-8"))["text_config"]
    text = {**text, "projection_dim": 512, "hidden_act": "quick_gelu"}
    if text_tower == "clip":
        text |= {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12,
                 "num_attention_heads": 8, "max_position_embeddings": 77}  # fmt: skip
    config = CLIPConfig(
        projection_dim=512,
        text_config=text,
        vision_config={"patch_size": 16, "projection_dim": 512},
    )
    torch.manual_seed(0)
    CLIPModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"):
        shutil.copy(mini / name, folder / name)
    settings = json.loads((mini / "preprocessor_config.json").read_text(encoding="utf-8"))
    settings["size"] = {"shortest_edge": 224}
    settings["crop_size"] = {"height": 224, "width": 224}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def photographs(count: int, short_side: int = 375) -> list[bytes]:
    """JPEG files cut from scikit-learn's two photographs: detail and colours of real ones."""
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(picture) for picture in load_sample_images().images]
    files = []
    for number in range(count):
        picture = pictures[number % len(pictures)]
        width, height = picture.size
        side = int(rng.integers(200, min(width, height)))
        left, top = int(rng.integers(0, width - side)), int(rng.integers(0, height - side))
        wide = (round(short_side * 4 / 3), short_side)
        part = picture.crop((left, top, left + side, top + side)).resize(wide)
        if number % 2:
            part = part.transpose(Image.Transpose.ROTATE_90)
        buffer = io.BytesIO()
        part.save(buffer, "JPEG", quality=90)
        files.append(buffer.getvalue())
    return files


def write_photographs(folder: Path, count: int, short_side: int = 375) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(photographs(count, short_side)):
        (folder / f"{number:06}.jpg").write_bytes(data)
    return folder
