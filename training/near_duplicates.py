"""Find benchmark icons that a training set also draws: the same picture at the same place.

    python training/near_duplicates.py --corpus CORPUS --iconshift src/ttgcd/data/iconshift

Prints ``set/icon`` lines for iconshift_excluded.txt. Each benchmark image is compared, as grey on
white at 24 x 24, with every training icon that shares a word of its name.
"""

from __future__ import annotations

import argparse
import collections
import csv
import io
from pathlib import Path

import numpy as np
from icons import SIDE
from names import words_of


def shrink(grey: np.ndarray) -> np.ndarray:
    return grey.reshape(-1, 24, 2, 24, 2).mean((2, 4), dtype=np.float32).reshape(len(grey), -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--iconshift", type=Path, required=True)
    parser.add_argument(
        "--closer-than", type=float, default=0.02, help="mean absolute difference, 0..1"
    )
    args = parser.parse_args()
    import pyarrow.parquet as pq
    from PIL import Image

    with (args.corpus / "index.csv").open() as file:
        rows = list(csv.reader(file))
    images = np.memmap(args.corpus / "images.raw", np.uint8, "r").reshape(-1, SIDE, SIDE, 4)
    by_word = collections.defaultdict(list)
    for i, row in enumerate(rows):
        for word in row[3].split():
            by_word[word].append(i)
    cache: dict[str, np.ndarray] = {}

    def drawn(word: str) -> np.ndarray:
        if word not in cache:
            rgba = images[by_word[word]].astype(np.float32) / 255
            cache[word] = shrink(rgba[..., :3].mean(-1) * rgba[..., 3] + 1 - rgba[..., 3])
        return cache[word]

    for path in sorted(args.iconshift.glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            grey = (
                np.asarray(Image.open(io.BytesIO(row["image"])).convert("RGB"), np.float32).mean(-1)
                / 255
            )
            own = shrink(grey[None])
            near = min(
                (
                    float(np.abs(drawn(w) - own).mean(1).min())
                    for w in words_of(row["icon"])
                    if by_word.get(w)
                ),
                default=1.0,
            )
            if near < args.closer_than:
                print(f"{row['set']}/{row['icon']}")


if __name__ == "__main__":
    main()
