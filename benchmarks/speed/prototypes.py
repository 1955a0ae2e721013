"""The prototype step, assign and update, as a share of a ViT-B/16 forward.

python -m benchmarks.speed.prototypes
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.speed.models import vit_b16
from benchmarks.speed.rows import Row, report, seconds
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.testing.model import batches
from ttgcd.vlm import load_vlm


def unit_rows(count: int, dim: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def step(categories: int, dim: int = 512, size: int = 128) -> float:
    """Seconds for one sample, in batches of 128, BLAS on one thread as in a session."""
    known = categories // 2
    task = Task(
        tuple(f"thing {i}" for i in range(known)), unit_rows(known, dim, 1), categories - known
    )
    method = Pact(warmup=2048, epochs=0)
    method.start(task)
    stream = batches(unit_rows(2048 + 64 * size, dim, 0), size)
    warm = 2048 // size
    for batch in stream[:warm]:
        method.observe(batch)
    with threadpool_limits(1, user_api="blas"):
        return min(seconds(lambda b=b: method.observe(b)) for b in stream[warm:]) / size


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        vlm = load_vlm(str(vit_b16(Path(name))))
    images = torch.zeros((8, 3, 224, 224), dtype=torch.uint8)
    encoder = vlm.encoder()
    encoder(images)
    forward = min(seconds(lambda: encoder(images)) for _ in range(3)) / len(images)
    rows = [
        Row(f"prototype step at {count:,} categories, of a ViT-B/16 forward", limit, "at most",
            100 * step(count) / forward, " %")
        for count, limit in ((345, 3.0), (1000, 6.0))
    ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
