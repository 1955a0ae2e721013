"""What re-alignment costs: one epoch in forwards of the encoder, whole and in part.

python -m benchmarks.speed.warmup
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.speed.models import vit_b16
from benchmarks.speed.rows import Row, report, seconds
from ttgcd.methods.realign import realign
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors
from ttgcd.vlm.base import VLM

NAMES = [f"thing {i}" for i in range(50)]


def epoch_in_forwards(vlm: VLM, images: int, depth: int, repeats: int = 3) -> float:
    """One epoch over the time of one forward, both without what is done once."""
    size = vlm.preprocess.size
    generator = torch.Generator().manual_seed(0)
    batch = torch.randint(0, 256, (images, 3, size, size), generator=generator, dtype=torch.uint8)
    anchors = text_anchors(vlm, NAMES, cache=False)
    labels, weights = np.arange(images) % len(NAMES), np.full(images, 0.5)
    encoder = vlm.encoder()

    def train(epochs: int) -> None:
        realign(
            vlm.trainable(), batch, anchors, labels, weights, logit_scale=vlm.logit_scale,
            epochs=epochs, lr=1e-2, batch_size=min(128, images), optimiser="sgd", seed=0,
            depth=depth,
        )  # fmt: skip

    ratios = []
    encoder(batch)
    for _ in range(repeats):
        forward = seconds(lambda: encoder(batch))
        few, more = seconds(lambda: train(2)), seconds(lambda: train(4))
        ratios.append((more - few) / 2 / forward)
    return float(np.median(ratios))


def main() -> None:
    mini = load_vlm("mini")
    rows = [
        Row("one epoch of re-alignment with mini, in forwards", 2.3, "at most",
            epoch_in_forwards(mini, 512, 0), " forwards"),
        Row("the same, last block alone (--realign-depth 1)", 1.0, "at most",
            epoch_in_forwards(mini, 512, 1), " forwards"),
    ]  # fmt: skip
    if "--without-vit" in sys.argv:
        report(rows)
        return
    with tempfile.TemporaryDirectory() as name:
        vit = load_vlm(str(vit_b16(Path(name))))
    rows += [
        Row("one epoch with the ViT-B/16 shape, in forwards", 2.3, "at most",
            epoch_in_forwards(vit, 8, 0, repeats=1), " forwards"),
        Row("the same, last block alone (--realign-depth 1)", 0.5, "at most",
            epoch_in_forwards(vit, 8, 1, repeats=1), " forwards"),
    ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
