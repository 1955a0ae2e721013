"""How much the mini-batch variant of k-means changes the estimate of L, and what it saves.

    python benchmarks/count_kmeans.py DATA/cifar10/train/images.npy --samples 30000

Zero-shot features of the embedded model, five known classes, the same features for both.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from ttgcd.prototypes.count import estimate_novel_count
from ttgcd.vlm import load_vlm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", help="an array of images (n, h, w, 3)")
    parser.add_argument("--samples", type=int, default=30_000)
    parser.add_argument("--known", type=int, default=5)
    parser.add_argument("--model", default="mini")
    args = parser.parse_args()
    vlm = load_vlm(args.model)
    images = np.load(args.images, mmap_mode="r")[: args.samples]
    features = np.concatenate(
        [encode(vlm, images[start : start + 128]) for start in range(0, len(images), 128)]
    )
    for kmeans in ("mini-batch", "plain"):
        for seed in (0, 1):
            began = time.perf_counter()
            found = estimate_novel_count(features, args.known, kmeans=kmeans, seed=seed)
            seconds = time.perf_counter() - began
            best = max(score for _, score in found.trace)
            print(
                f"{kmeans:10} seed {seed}: {found.novel} novel (k = {found.k}), silhouette "
                f"{best:.4f}, {len(found.trace)} values of k, {seconds:.0f} s",
                flush=True,
            )


def encode(vlm, images: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    return vlm.encoder()(torch.stack([vlm.preprocess(np.array(image)) for image in images]))


if __name__ == "__main__":
    main()
