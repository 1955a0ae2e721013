"""Write `mini` as a Hugging Face CLIP checkpoint: config, safetensors in half precision, tokenizer.

python training/export.py --corpus CORPUS --run RUN --out src/ttgcd/data/mini
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from model import MEAN, STD, fold_norm, make_config, make_model
from safetensors.torch import save_file
from torch.nn import functional as F
from transformers import CLIPTokenizer

SIDE = 32  # the side of most of the training; the grid of position embeddings is shrunk to it
PREPROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "do_resize": True,
    "size": {"shortest_edge": SIDE},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": SIDE, "width": SIDE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": list(MEAN),
    "image_std": list(STD),
    "do_convert_rgb": True,
}


def shrink_grid(positions: torch.Tensor, side: int) -> torch.Tensor:
    """Position embeddings (class token first) for another side, as CLIPVisionEmbeddings does."""
    grid, dim = round((len(positions) - 1) ** 0.5), positions.shape[1]
    tokens = positions[1:].view(1, grid, grid, dim).permute(0, 3, 1, 2)
    tokens = F.interpolate(tokens, size=(side // 8, side // 8), mode="bicubic", align_corners=False)
    return torch.cat([positions[:1], tokens.permute(0, 2, 3, 1).reshape(-1, dim)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    saved = torch.load(args.run / "checkpoint.pt", weights_only=False)
    for path in sorted((args.run / "tokenizer").iterdir()):
        shutil.copy(path, args.out / path.name)
    shape = {key: saved["args"][key] for key in ("width", "layers", "channels", "blocks", "dim")}
    vocabulary = len(CLIPTokenizer.from_pretrained(args.out))
    config = make_config(**shape, vocabulary=vocabulary, side=SIDE)
    model = make_model(config)
    tower = {k: v for k, v in saved["model"].items() if not k.startswith(("text_", "logit"))}
    grid = "vision_model.embeddings.position_embedding.weight"
    tower[grid] = shrink_grid(tower[grid], SIDE)
    left = model.load_state_dict({**tower, **torch.load(args.run / "text.pt")}, strict=False)
    assert left.missing_keys == ["logit_scale"] and not left.unexpected_keys, left
    model.logit_scale.data = saved["scale"].clone()
    embeddings = model.vision_model.embeddings
    embeddings.patch_embedding = fold_norm(embeddings.patch_embedding)
    state = {k: v.half().contiguous() for k, v in model.state_dict().items()}
    state["logit_scale"] = model.logit_scale.data
    save_file(state, args.out / "model.safetensors", metadata={"format": "pt"})
    config.architectures = ["CLIPModel"]
    config.save_pretrained(args.out)
    (args.out / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR, indent=2) + "\n")
    shutil.copy(args.corpus / "sets.csv", args.out / "ATTRIBUTION.csv")
    print(sum(v.numel() for v in state.values()), "parameters")


if __name__ == "__main__":
    main()
