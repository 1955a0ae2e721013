"""Tiny copies of the five benchmarks in their official layouts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from ttgcd.datasets.classes import folder_names
from ttgcd.datasets.folders import DOMAINS


def cifar_c(root: Path, kinds: Sequence[str], images: int = 20, n_classes: int = 10) -> Path:
    """Row r of every file is filled with r mod 256, so that a reader's rows can be told."""
    root.mkdir(parents=True, exist_ok=True)
    rows = 5 * images
    values = np.arange(rows, dtype=np.uint8)[:, None, None, None]
    for kind in kinds:
        np.save(root / f"{kind}.npy", np.broadcast_to(values, (rows, 32, 32, 3)))
    np.save(root / "labels.npy", np.tile(np.arange(images) % n_classes, 5))
    return root


def picture(path: Path, value: int, size: int = 8) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (size, size), (value % 256, 0, 0)).save(path)


def imagenet_c(root: Path, kinds: Sequence[str], per_class: int = 1, severity: int = 5) -> Path:
    """All 1,000 class folders with a few images each."""
    for kind in kinds:
        for number, wnid in enumerate(folder_names("imagenet_wnids")):
            for copy in range(per_class):
                name = f"ILSVRC2012_val_{number * per_class + copy:08d}.JPEG"
                picture(root / kind / str(severity) / wnid / name, number)
    return root


def cub_c(root: Path, kinds: Sequence[str], metadata: bool = True) -> Path:
    """Two images a class; with metadata, the first of each is a training image."""
    images, split = [], []
    for number, folder in enumerate(folder_names("cub")):
        for copy in range(2):
            name = f"Bird_{number:04d}_{copy}.jpg"
            images.append(f"{len(images) + 1} {folder}/{name}")
            split.append(f"{len(images)} {1 - copy}")
            for kind in kinds:
                picture(root / kind / "5" / folder / name, number)
    if metadata:
        (root / "images.txt").write_text("\n".join(images) + "\n")
        (root / "train_test_split.txt").write_text("\n".join(split) + "\n")
    return root


def domainnet(root: Path, lists: bool = True, domains: Sequence[str] = DOMAINS) -> Path:
    """Two images a class and domain, one in each list."""
    for domain in domains:
        lines: dict[str, list[str]] = {"train": [], "test": []}
        for number, folder in enumerate(folder_names("domainnet")):
            for part in lines:
                name = f"{domain}/{folder}/{domain}_{number + 1:03d}_{part}.jpg"
                picture(root / name, number)
                lines[part].append(f"{name} {number}")
        if lists:
            for part, content in lines.items():
                (root / f"{domain}_{part}.txt").write_text("\n".join(content) + "\n")
    return root
