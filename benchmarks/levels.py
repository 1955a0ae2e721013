"""Are parts of a category real, and what do levels cost?

    python benchmarks/levels.py parts PACK.npz ...    # features `v` and classes `y` of a data set
    python benchmarks/levels.py cost --rows 100000 --categories 345

`parts`: every true class as a category of its own should stay whole; two true classes in one
category, drawn at random or nearest to each other, should be told apart, and rightly. `cost`:
processor seconds for the levels of rows made around as many centres, 512 wide: parts, tree, coarse
and fine.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from ttgcd.discovery.level_files import in_memory
from ttgcd.prototypes.parts import CLEARLY, LEAST, MOST_MEMBERS, Looks, halves

PAIRS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    parts = verbs.add_parser("parts")
    parts.add_argument("packs", nargs="+", type=Path)
    parts.add_argument("--clearly", type=float, default=CLEARLY, help="deviations of a clear split")
    cost = verbs.add_parser("cost")
    cost.add_argument("--rows", type=int, default=100_000)
    cost.add_argument("--categories", type=int, default=345)
    args = parser.parse_args()
    if args.verb == "cost":
        measure_cost(args.rows, args.categories)
        return
    print(
        "| data | classes | split, of single classes | told apart: random pairs | nearest pairs |"
    )
    print("|---|---:|---:|---:|---:|")
    for pack in args.packs:
        with np.load(pack) as data:
            rows, true = data["v"].astype(np.float32), data["y"]
            print(parts_of(pack.stem, rows, true, args.clearly), flush=True)


def parts_of(name: str, rows: np.ndarray, true: np.ndarray, least: float) -> str:
    """One line of the table; percentages, and how pure the halves of random pairs are."""
    looks, rng = Looks.of(rows)(rows), np.random.default_rng(0)
    large = [c for c in np.unique(true) if (true == c).sum() >= 2 * LEAST]
    split = [clearness(looks[true == c]) >= least for c in large]
    drawn = [rng.choice(large, 2, replace=False) for _ in range(PAIRS)]
    centres = np.stack([looks[true == c].mean(axis=0) for c in large])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    cosines = centres @ centres.T
    np.fill_diagonal(cosines, -1)
    nearest = [(large[i], large[int(cosines[i].argmax())]) for i in range(min(PAIRS, len(large)))]
    purity = [pure(looks, true, *pair) for pair in drawn]
    told = [
        [clearness(looks[np.isin(true, pair)]) >= least for pair in pairs]
        for pairs in (drawn, nearest)
    ]
    one, drawn_apart, near_apart, halved = (
        f"{100 * np.mean(shares):.0f} %" for shares in (split, *told, purity)
    )
    return f"| {name} | {len(large)} | {one} | {drawn_apart}, halves {halved} pure | {near_apart} |"


def clearness(rows: np.ndarray) -> float:
    return halves(rows[:MOST_MEMBERS])[1]


def pure(looks: np.ndarray, true: np.ndarray, one: int, other: int) -> float:
    rows = np.flatnonzero(np.isin(true, (one, other)))[:MOST_MEMBERS]
    half, _ = halves(looks[rows])
    right = float((half == (true[rows] == one)).mean())
    return max(right, 1 - right)


def measure_cost(rows: int, categories: int) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(categories, 512)).astype(np.float32)
    category = rng.integers(0, categories, rows)
    features = np.empty((rows, 512), np.float16)
    for begin in range(0, rows, 8192):
        part = slice(begin, begin + 8192)
        noise = rng.normal(size=(len(category[part]), 512)).astype(np.float32)
        block = centres[category[part]] + noise
        features[part] = block / np.linalg.norm(block, axis=1, keepdims=True)
    records = [
        {"id": c, "kind": "novel", "name": f"novel {c + 1}", "suggested_names": []}
        for c in range(categories)
    ]
    began = time.process_time()
    levels = in_memory(features, category, records, None)
    found = time.process_time()
    numbers = {name: len(levels.at(name)) for name in ("coarse", "fine")}
    ended = time.process_time()
    print(
        f"{rows:,} rows, {categories:,} categories, processor seconds: {found - began:.1f} for the "
        f"parts, {ended - found:.1f} for the tree and two levels "
        f"({numbers['coarse']:,} coarse, {numbers['fine']:,} fine)"
    )


if __name__ == "__main__":
    main()
