"""How far one ordered session reaches: a model from measured rates, checked by a simulation.

    python benchmarks/capacity.py [--images 20000] [--per-worker 25 1000]

Measured here: the ordered step (one batch of 128 features, 512 wide, through the session into an
output folder) and what the driver spends on a batch that comes from Ray workers. Not measured here:
the rate of a worker, which is given (``--per-worker``, images a second): it depends on your model
and machine, see `benchmarks/cluster.py`.

The model: W workers at r images a second, a driver that needs t seconds for a batch of B, give
min(W r, B / t) images a second. The simulation lets every batch take its own time (log-normal,
spread 30 %), keeps the window of the engine, and hands batches on in order.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.engines.cluster.pool import EncoderPool
from ttgcd.engines.cluster.stream import AHEAD, PooledStream
from ttgcd.engines.folder import run_to_folder
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.streams.arrays import open_array
from ttgcd.streams.stream import Stream

BATCH, DIM, KNOWN, NOVEL = 128, 512, 100, 100
WORKERS = (1, 2, 10, 100, 1000)
SIZES = (10**6, 10**8, 10**9)
#: A name and what Python keeps beside it, and the place of a sample in the order.
BYTES_PER_NAME, BYTES_PER_PLACE = 120, 8


def ordered_step(images: int, pool: EncoderPool | None) -> float:
    """Seconds of the driver's thread for one batch of embeddings, read here or by workers."""
    rng = np.random.default_rng(0)
    anchors = rng.normal(size=(KNOWN, DIM)).astype(np.float32)
    anchors /= np.linalg.norm(anchors, axis=1, keepdims=True)
    task = Task(tuple(f"thing {k}" for k in range(KNOWN)), anchors, NOVEL)
    method = Pact(warmup=1024)
    rows = rng.normal(size=(images, DIM)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        source = open_array(str(Path(folder) / "rows.npy"))

        def make(place: int, index: int) -> Stream:
            if pool is None:
                return Stream(source, None, BATCH, None, place, index, workers=1)
            return PooledStream(source, method, pool, BATCH, None, place, index)

        began: list[float] = []

        def note(phase: str, done: int, total: int) -> None:
            if phase == "stream" and done > 2048:  # past the warm-up
                began.append(time.thread_time())

        run_to_folder(method, task, make, Path(folder) / "out", {}, progress=note)
    return float((began[-1] - began[0]) / (len(began) - 1))


def model(workers: int, rate: float, step: float) -> float:
    """Images a second."""
    return min(workers * rate, BATCH / step)


def simulated(workers: int, rate: float, step: float, seed: int = 0) -> float:
    """Images a second of a pipeline with workers that vary, a window, and an ordered end."""
    rng = np.random.default_rng(seed)
    spread = 0.3
    count = max(4000, 30 * workers)
    times = rng.lognormal(-0.5 * np.log1p(spread**2), np.sqrt(np.log1p(spread**2)), count)
    times *= BATCH / rate
    free = [0.0] * workers  # when each worker can begin its next batch
    heapq.heapify(free)
    window = AHEAD * workers
    consumed: list[float] = []
    ready = np.zeros(count)
    given = 0
    clock = half = 0.0
    for number in range(count):
        while given < count and given < number + window:
            # A place in the window opens when the batch a window earlier was handed on.
            allowed = consumed[given - window] if given >= window else 0.0
            begin = max(heapq.heappop(free), allowed)
            ready[given] = begin + times[given]
            heapq.heappush(free, ready[given])
            given += 1
        clock = max(clock, ready[number]) + step
        consumed.append(clock)
        if number == count // 2:
            half = clock
    return BATCH * (count - 1 - count // 2) / (clock - half)


def duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"


def table(rate: float, step: float) -> None:
    print(f"\nworkers of {rate:,.0f} images/s, {1000 * step:.2f} ms for a batch in the driver\n")
    heads = ["workers", "model, images/s", "simulated", "limit", "network into the driver"]
    print("| " + " | ".join([*heads, *(f"{size:,} images" for size in SIZES)]) + " |")
    print("|" + "---:|" * (len(heads) + len(SIZES)))
    for workers in WORKERS:
        speed = model(workers, rate, step)
        cells: list[Any] = [
            f"{workers:,}",
            f"{speed:,.0f}",
            f"{simulated(workers, rate, step):,.0f}",
            "workers" if workers * rate < BATCH / step else "ordered step",
            f"{speed * 4 * DIM / 1e6:,.1f} MB/s",
            *(duration(size / speed) for size in SIZES),
        ]
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--per-worker", type=float, nargs="+", default=[25.0, 1000.0])
    args = parser.parse_args()
    alone = ordered_step(args.images, None)
    with EncoderPool(None, 2) as pool:
        pool.processes()
        from_ray = ordered_step(args.images, pool)
    print(f"ordered step, {KNOWN} known + {NOVEL} novel: {1000 * alone:.2f} ms a batch of {BATCH}")
    print(f"the same with batches from Ray workers: {1000 * from_ray:.2f} ms")
    window = AHEAD * BATCH * DIM * 4
    print(f"driver memory: {window / 1e6:.1f} MB a worker for the window, and for every sample")
    each = BYTES_PER_NAME + BYTES_PER_PLACE
    print(f"about {each} bytes for its id and its place: {each * 10**9 / 1e9:.0f} GB for 1e9")
    for rate in args.per_worker:
        table(rate, from_ray)


if __name__ == "__main__":
    main()
