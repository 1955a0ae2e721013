"""The data sets that the pages on benchmarks speak of: their layouts, very few images."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from tests.datasets.tiny import cifar_c, domainnet, imagenet_c, picture
from tests.vlm.checkpoints import write_clip
from ttgcd.cli import main
from ttgcd.datasets.classes import folder_names
from ttgcd.datasets.iconshift import load_iconshift

IMAGES = 40
#: a CLIP that takes no time: what is held here is that the commands work
MODEL = "tiny-clip"


def _icons(count: int, side: int) -> np.ndarray:
    source, _ = load_iconshift("line")
    opened = (Image.open(io.BytesIO(source.read(n))).convert("RGB") for n in range(count))
    return np.stack([np.asarray(image.resize((side, side))) for image in opened])


def make_benchmark_data(folder: Path) -> None:
    """CIFAR-10-C by the project's own command; the others as their readers expect them."""
    write_clip(folder / MODEL, size=16)
    data, clean = folder / "DATA", folder / "DATA" / "cifar10" / "test"
    clean.mkdir(parents=True)
    images, labels = _icons(IMAGES, 32), np.arange(IMAGES) % 10
    np.save(clean / "images.npy", images)
    np.save(clean / "labels.npy", labels)
    prepare = ["data", "prepare", "cifar10-c", str(data / "CIFAR-10-C"), "--from"]
    assert main([*prepare, str(clean.parent), "--kind", "all", "--workers", "1"]) == 0
    cifar_c(data / "CIFAR-100-C", ["fog", "spatter"], images=100, n_classes=100)
    imagenet_c(data / "ImageNet-C", ["fog"])
    domainnet(data / "DomainNet", domains=["sketch"])
    (data / "fashion-mnist").mkdir()
    np.save(data / "fashion-mnist" / "images.npy", _icons(IMAGES, 28))
    np.save(data / "fashion-mnist" / "labels.npy", labels)
    (folder / "CORPUS").mkdir()
    np.savez(folder / "CORPUS" / "cifar10.npz", test=images, test_labels=labels)


def make_clean_images(folder: Path) -> None:
    """Clean images by class, of which ``ttgcd corrupt`` makes a set."""
    for name in folder_names("imagenet_wnids")[:2]:
        picture(folder / "IMAGENET_VAL" / name / "a.JPEG", 80, 64)
    for name in folder_names("cub")[:2]:
        picture(folder / "CUB_200_2011" / "images" / name / "a.jpg", 80, 64)


def make_pickled_model(folder: Path) -> None:
    """A CLIP as older repositories hold it: weights in a pickle."""
    from transformers import CLIPModel

    write_clip(folder, size=16)
    torch.save(CLIPModel.from_pretrained(folder).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
