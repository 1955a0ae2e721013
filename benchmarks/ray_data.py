"""Ray Data in the place of the workers: how fast, and are its features those of the local engine?

    python benchmarks/ray_data.py [--images 4096] [--repeats 3]

The same image files (IconShift's) are read, decoded and encoded by the embedded model on two
one-thread actors: by the pool of the Ray engine, which hands out the batches of the method, and by
`ray.data.read_binary_files(...).map_batches(batch_size=128)`, in order. Printed: images a second of
both, the sizes of the batches that Ray Data made, and how many features have other bits.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from ttgcd.data import path as data_path
from ttgcd.engines.cluster.pool import EncoderPool, connect, model_of, require_ray
from ttgcd.engines.cluster.stream import PooledStream
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.streams.decode import decode
from ttgcd.streams.folder import FolderSource
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm

BATCH = 128


class Encode:
    """What an actor of Ray Data does with a batch of files."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.vlm = load_vlm("mini")
        self.encoder = self.vlm.encoder()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        images = torch.stack([self.vlm.preprocess(decode(data)) for data in batch["bytes"]])
        count = len(images)
        return {"features": self.encoder(images), "path": batch["path"], "size": [count] * count}


def by_ray_data(folder: str) -> tuple[float, np.ndarray, Counter[int]]:
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    files = ray.data.read_binary_files(folder, include_paths=True)
    encoded = files.map_batches(
        Encode, batch_size=BATCH, num_cpus=1, compute=ray.data.ActorPoolStrategy(size=2)
    )
    began, rows, sizes = 0.0, {}, Counter[int]()
    for batch in encoded.iter_batches(batch_size=BATCH):
        began = began or time.perf_counter()  # the actors are there
        for path, row, size in zip(batch["path"], batch["features"], batch["size"]):
            rows[path] = row
            sizes[int(size)] += 1
    seconds = time.perf_counter() - began
    return (len(rows) - BATCH) / seconds, np.stack([rows[path] for path in sorted(rows)]), sizes


def by_pool(folder: str, pool: EncoderPool, method: Pact) -> tuple[float, np.ndarray]:
    began, parts = 0.0, []
    for batch in PooledStream(FolderSource(folder), method, pool, BATCH):
        began = began or time.perf_counter()
        assert batch.features is not None
        parts.append(batch.features)
    features = np.concatenate(parts)
    return (len(features) - BATCH) / (time.perf_counter() - began), features


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("RAY_worker_niceness", "0")
    vlm = load_vlm("mini")
    pictures = pq.read_table(data_path("iconshift", "emoji.parquet")).column("image").to_pylist()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.images):
            (Path(folder) / f"{number:06d}.png").write_bytes(pictures[number % len(pictures)])
        encoder = vlm.encoder()
        stream = Stream(FolderSource(folder), vlm.preprocess, BATCH)
        local = np.concatenate([encoder(b.images) for b in stream if b.images is not None])
        connect(None, 3)
        rates: dict[str, list[float]] = {"pool": [], "Ray Data": []}
        for _ in range(args.repeats):
            method = Pact(warmup=256, epochs=0)
            method.start(Task(("a",), np.ones((1, vlm.dim), np.float32), 1, vlm=vlm))
            with EncoderPool(model_of(vlm, "mini"), 2) as pool:
                pool.processes()
                rate, ours = by_pool(folder, pool, method)
            rates["pool"].append(rate)
            rate, theirs, sizes = by_ray_data(folder)
            rates["Ray Data"].append(rate)
        require_ray().shutdown()
    for name, found, features in (
        ("pool", rates["pool"], ours),
        ("Ray Data", rates["Ray Data"], theirs),
    ):
        other = int((features != local).any(axis=1).sum())
        print(f"{name:9} {statistics.median(found):6,.0f} images/s, {other} rows with other bits")
    batches = ", ".join(f"{n // size} of {size}" for size, n in sorted(sizes.items()))
    print(f"batches that Ray Data made: {batches}")


if __name__ == "__main__":
    main()
