"""Measure `mini`: zero-shot accuracy, modality gap, parameters and speed.

    python training/evaluate.py [--cifar CORPUS/cifar10.npz] [--corruptions 500] [--json OUT.json]

Every image is given the class whose text ("a photo of a {}.") is nearest by cosine. Without
--cifar only IconShift is measured. --corpus CORPUS adds the photographs held back from training;
with --run RUN they are also named by the word vectors that the text tower should land on.
--corruptions N adds the 15 corruptions at severity 3 and 5 on N images of each benchmark (every
len/N-th in source order).
"""

from __future__ import annotations

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ttgcd.corruptions import KINDS, corrupt
from ttgcd.datasets.iconshift import iconshift_classes, iconshift_domains, load_iconshift
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

CIFAR10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


@torch.no_grad()
def features(vlm, images: np.ndarray) -> np.ndarray:
    return np.concatenate(
        [
            vlm.encode_images(vlm.preprocess(images[i : i + 256])).numpy()
            for i in range(0, len(images), 256)
        ]
    )


def load_domain(domain: str) -> tuple[np.ndarray, np.ndarray]:
    source, labels = load_iconshift(domain)
    names = sum(iconshift_classes(), ())
    images = [np.asarray(Image.open(io.BytesIO(source.read(i)))) for i in range(len(source))]
    return np.stack(images), np.array([names.index(label) for label in labels])


def accuracy(encoded: np.ndarray, anchors: np.ndarray, labels: np.ndarray) -> float:
    return round(100 * float(((encoded @ anchors.T).argmax(1) == labels).mean()), 1)


def gap(encoded: np.ndarray, anchors: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Mean cosines: between images, of one class or any, and of an image and its text or any."""
    mean = encoded.mean(0)
    n = len(encoded)
    between = (n * n * float(mean @ mean) - n) / (n * (n - 1))
    centre_gap = float(np.linalg.norm(mean - anchors[labels].mean(0)))
    sums = [encoded[labels == k].sum(0) for k in np.unique(labels)]
    sizes = np.bincount(labels)[np.unique(labels)]
    same = (sum(float(v @ v) for v in sums) - n) / float((sizes * (sizes - 1)).sum())
    return {
        "image_image": round(between, 3),
        "image_image_same_class": round(same, 3),
        "image_own_text": round(float((encoded * anchors[labels]).sum(1).mean()), 3),
        "image_any_text": round(float((encoded @ anchors.T).mean()), 3),
        "distance_of_the_means": round(centre_gap, 3),
    }


def held_back(vlm, folder: Path, run: Path | None) -> dict[str, object]:
    """The photographs held back from training: named by text, by class, and by word vectors."""
    from corpus import CIFAR
    from data import Corpus

    corpus = Corpus(folder)
    encoded = features(vlm, corpus.photos[corpus.photo_valid])
    labels = corpus.labels[corpus.photo_valid]
    anchors = text_anchors(vlm, CIFAR10, cache=False)
    table: dict[str, object] = {"text": accuracy(encoded, anchors, labels)}
    for k, name in enumerate(CIFAR10):
        table[name] = accuracy(encoded[labels == k], anchors, labels[labels == k])
    if run:
        saved = torch.load(run / "checkpoint.pt", weights_only=False)
        rows = [saved["vocabulary"].index(word) for word in CIFAR]
        words = torch.nn.functional.normalize(saved["words"][rows], dim=-1).numpy()
        table["word vectors"] = accuracy(encoded, words, labels)
    return table


def corrupted(vlm, images: np.ndarray, labels: np.ndarray, anchors: np.ndarray, count: int) -> dict:
    pick = np.arange(0, len(images), max(1, len(images) // count))[:count]
    table = {"clean": accuracy(features(vlm, images[pick]), anchors, labels[pick])}
    for severity in (3, 5):
        for kind in KINDS:
            bad = np.stack([corrupt(images[i], kind, severity, (0, int(i))) for i in pick])
            table[f"{kind} {severity}"] = accuracy(features(vlm, bad), anchors, labels[pick])
        mean = np.mean([table[f"{kind} {severity}"] for kind in KINDS])
        table[f"mean {severity}"] = round(float(mean), 1)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="mini")
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--corruptions", type=int, default=0)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    vlm = load_vlm(args.model)
    found: dict = {"parameters": sum(p.numel() for p in vlm.model.parameters()), "zero_shot": {}}
    found["logit_scale"] = round(vlm.logit_scale, 2)
    anchors = text_anchors(vlm, sum(iconshift_classes(), ()), cache=False)
    parts = [load_domain(domain) for domain in iconshift_domains()]
    images, labels = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    start = time.perf_counter()
    encoded = features(vlm, images)
    found["images_per_second"] = round(len(images) / (time.perf_counter() - start))
    found["threads"] = torch.get_num_threads()
    begin = 0
    for domain, (_, own) in zip(iconshift_domains(), parts, strict=True):
        rows = slice(begin, begin + len(own))
        found["zero_shot"][domain] = accuracy(encoded[rows], anchors, own)
        begin += len(own)
    found["zero_shot"]["all domains"] = accuracy(encoded, anchors, labels)
    found["gap iconshift"] = gap(encoded, anchors, labels)
    if args.corruptions:
        found["corrupted iconshift"] = corrupted(vlm, images, labels, anchors, args.corruptions)
    if args.cifar:
        data = np.load(args.cifar)
        images, labels = data["test"], data["test_labels"]
        anchors = text_anchors(vlm, CIFAR10, cache=False)
        encoded = features(vlm, images)
        found["zero_shot"]["cifar10 test"] = accuracy(encoded, anchors, labels)
        found["gap cifar10"] = gap(encoded, anchors, labels)
        if args.corruptions:
            found["corrupted cifar10"] = corrupted(vlm, images, labels, anchors, args.corruptions)
    if args.corpus:
        found["held-back photographs"] = held_back(vlm, args.corpus, args.run)
    text = json.dumps(found, indent=1)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
