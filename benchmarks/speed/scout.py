"""The default method, refits and the last revision included, as a share of ViT-B/16 forwards.

python -m benchmarks.speed.scout [--samples 100000]
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.speed.models import vit_b16
from benchmarks.speed.rows import Row, report, seconds
from ttgcd.methods.base import Task
from ttgcd.methods.scout import Scout
from ttgcd.prototypes.calibration import unit
from ttgcd.streams.base import Batch
from ttgcd.vlm import load_vlm

CATEGORIES, DIM, SIZE, WORDS = 345, 512, 128, 1500


def task() -> Task:
    """Half of the categories are known; the names lie near their classes, the words anywhere."""
    rng, known = np.random.default_rng(1), CATEGORIES // 2
    names = unit(means()[:known] + 0.4 * unit(rng.normal(size=(known, DIM))))
    words = unit(rng.normal(size=(WORDS, DIM)))
    labels = tuple(f"thing {i}" for i in range(known))
    return Task(labels, names, CATEGORIES - known, word_embeddings=words)


def means() -> np.ndarray:
    return unit(np.random.default_rng(0).normal(size=(CATEGORIES, DIM)))


def batches(samples: int) -> Iterator[Batch]:
    """Features around class means, made one batch at a time."""
    centres, rng = means(), np.random.default_rng(2)
    for start in range(0, samples, SIZE):
        places = tuple(range(start, min(samples, start + SIZE)))
        noise = unit(rng.normal(size=(len(places), DIM)))
        rows = unit(centres[rng.integers(0, CATEGORIES, len(places))] + noise)
        names = tuple(map(str, places))
        yield Batch(names, start, places, places[-1] + 1, features=rows)


def run(samples: int) -> tuple[float, float]:
    """Processor seconds a sample, BLAS on one thread as in a session; and by how much the memory
    in use grew after the reservoir was full (bytes over those at that point)."""
    method = Scout()
    method.start(task())
    spent, full = 0.0, 0
    tracemalloc.start()
    with threadpool_limits(1, user_api="blas"):
        for batch in batches(samples):
            spent += seconds(lambda b=batch: method.observe(b))  # type: ignore[misc]
            if not full and method.seen >= 2 * method.reservoir:
                full = tracemalloc.get_traced_memory()[0]
        after = tracemalloc.get_traced_memory()[0]
        spent += seconds(method.finish)
        for batch in batches(samples):
            features = batch.features
            spent += seconds(lambda b=batch, f=features: method.revise(b.start, f))  # type: ignore[misc]
    tracemalloc.stop()
    return spent / samples, after / max(1, full)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    args, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        vlm = load_vlm(str(vit_b16(Path(name))))
    images = torch.zeros((8, 3, 224, 224), dtype=torch.uint8)
    encoder = vlm.encoder()
    encoder(images)
    forward = min(seconds(lambda: encoder(images)) for _ in range(3)) / len(images)
    sample, grown = run(args.samples)
    what = f"{args.samples:,} samples, {CATEGORIES} categories"
    report(
        [
            Row(f"Scout, refits and revision included, of ViT-B/16 forwards: {what}", 5.0,
                "at most", 100 * sample / forward, " %", f"{1e6 * sample:.0f} µs a sample"),
            Row(f"Scout's memory at the end over that with a full reservoir: {what}", 1.05,
                "at most", grown),
        ]
    )  # fmt: skip


if __name__ == "__main__":
    main()
