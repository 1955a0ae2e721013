"""The Ray engine beside the local one on the same cores, as ratios within one run.

    python benchmarks/cluster.py [--model mini] [--images 6144] [--repeats 3]

Three engines encode the same images (IconShift's, repeated) in turn, several times over: the local
stream with two threads, Ray with one one-thread worker, Ray with two. A figure is the median over
the repeats of images a second, divided by another one. Workers are started before the clock is; the
seconds that takes are printed beside, and what they make of the ratio for runs of several lengths.

``--bare`` adds what these cores give without Ray: one and two processes that only encode.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from ttgcd.data import path as data_path
from ttgcd.engines.cluster.pool import EncoderPool, connect, model_of, require_ray
from ttgcd.engines.cluster.stream import PooledStream
from ttgcd.engines.session import Session
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.streams.base import Batch, Source
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors


class Repeated(Source):
    """The icons over and over."""

    def __init__(self, count: int) -> None:
        table = pq.read_table(data_path("iconshift", "emoji.parquet"), columns=["image"])
        self._files: list[bytes] = table.column("image").to_pylist()
        self._count = count

    def __len__(self) -> int:
        return self._count

    def id(self, position: int) -> str:
        return str(position)

    def read(self, position: int) -> bytes:
        return self._files[position % len(self._files)]


def encode_only(model: str, batches: int, start: Any, rates: Any) -> None:
    """One process without Ray, without reading: what a core gives."""
    torch.set_num_threads(1)
    vlm = load_vlm(model)
    encoder, size = vlm.encoder(), vlm.preprocess.size
    images = torch.zeros((128, 3, size, size), dtype=torch.uint8)
    encoder(images)
    start.wait()
    began = time.perf_counter()
    for _ in range(batches):
        encoder(images)
    rates.put(128 * batches / (time.perf_counter() - began))


def bare(model: str, processes: int, images: int) -> float:
    spawn = multiprocessing.get_context("spawn")
    start, rates = spawn.Barrier(processes), spawn.Queue()
    arguments = (model, images // 128, start, rates)
    running = [spawn.Process(target=encode_only, args=arguments) for _ in range(processes)]
    for process in running:
        process.start()
    total = sum(rates.get() for _ in running)
    for process in running:
        process.join()
    return float(total)


def rate(method: Pact, task: Task, stream: Iterable[Batch], images: int) -> float:
    session = Session(method, task)
    began = time.perf_counter()
    session.drive(stream)
    return images / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="mini")
    parser.add_argument("--images", type=int, default=6144)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--bare", action="store_true", help="also two processes without Ray")
    args = parser.parse_args()
    torch.set_num_threads(2)
    vlm = load_vlm(args.model)
    names = [f"thing {number}" for number in range(50)]
    anchors = text_anchors(vlm, names, cache=False)
    task = Task(tuple(names), anchors, 10, vlm=vlm, logit_scale=vlm.logit_scale)
    source = Repeated(args.images)
    # Ray's workers are nicer than other processes; beside others, that would be what is measured.
    os.environ.setdefault("RAY_worker_niceness", "0")
    began = time.perf_counter()
    connect(None, 3)
    pools = {2: EncoderPool(model_of(vlm, args.model), 2)}
    pools[2].processes()
    start_up = time.perf_counter() - began
    pools[1] = EncoderPool(model_of(vlm, args.model), 1)
    pools[1].processes()
    rates: dict[str, list[float]] = {"local": [], "ray 1": [], "ray 2": []}
    for _ in range(args.repeats):
        for name, found in rates.items():
            method = Pact(warmup=256, epochs=0)  # nothing but the stream
            if name == "local":
                stream: Stream = Stream(source, vlm.preprocess)
            else:
                stream = PooledStream(source, method, pools[int(name[-1])])
            found.append(rate(method, task, stream, args.images))
    require_ray().shutdown()
    local, one, two = (statistics.median(found) for found in rates.values())
    size = vlm.preprocess.size
    print(f"model {vlm.name}, {args.images} images of {size} px, median of {args.repeats}")
    print(f"local, two threads           1.00   ({local:,.0f} images/s)")
    print(f"Ray, two one-thread workers  {two / local:.2f}")
    print(f"Ray, one worker              {one / local:.2f}")
    print(f"from one to two workers      {two / one:.2f}")
    spread = {name: np.ptp(found) / np.median(found) for name, found in rates.items()}
    print("spread between repeats       " + ", ".join(f"{k} {v:.0%}" for k, v in spread.items()))
    print(f"starting Ray and two workers {start_up:.1f} s; with it, Ray beside local on")
    for seconds in (60, 600, 3600):  # of the local engine
        print(f"  a local run of {seconds:>4} s      {1 / (start_up / seconds + local / two):.2f}")
    if args.bare:
        alone, both = (bare(args.model, processes, args.images) for processes in (1, 2))
        print(f"two processes without Ray    {both / alone:.2f}   (encoding alone, {both:,.0f}/s)")


if __name__ == "__main__":
    main()
