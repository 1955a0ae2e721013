"""How far one ordered session reaches: a model from measured rates, set against whole runs.

    python benchmarks/capacity.py [--images 20000] [--per-worker 25 1000]

Measured here: the ordered step (one batch of 128 features, 512 wide, through the session into an
output folder) for PACT and for Scout, read in this process and with batches from Ray workers; and
whole runs of the engine with 1 to 8 workers that need a given time for a batch (they sleep, so that
two cores are enough for all of them). Not measured here: the rate of a real worker, which is given
(``--per-worker``, images a second): it depends on model and machine (`benchmarks/cluster.py`).

The model: W workers at r images a second, a driver that needs t seconds for a batch of B, give
min(W r, B / t) images a second. The simulation lets every batch take its own time (log-normal,
spread 30 %), keeps the window of the engine, and hands batches on in order.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.engines.cluster.pool import EncoderPool
from ttgcd.engines.cluster.stream import AHEAD, PooledStream
from ttgcd.engines.folder import run_to_folder
from ttgcd.methods.base import Method, Task
from ttgcd.methods.pact import Pact
from ttgcd.methods.scout import Scout
from ttgcd.streams.arrays import open_array
from ttgcd.streams.base import Batch, Source
from ttgcd.streams.stream import Stream

BATCH, DIM, KNOWN, NOVEL, WORDS = 128, 512, 100, 100, 1500
WORKERS = (1, 2, 10, 100, 1000)
SIZES = (10**6, 10**8, 10**9)
#: A name and what Python keeps beside it, and the place of a sample in the order.
BYTES_PER_NAME, BYTES_PER_PLACE = 120, 8


class Paced(Source):
    """Embeddings that a worker cannot have faster than so many a second."""

    kind = "embeddings"

    def __init__(self, rows: Source, per_second: float) -> None:
        self.rows, self.per_second = rows, per_second

    def __len__(self) -> int:
        return len(self.rows)

    def id(self, position: int) -> str:
        return self.rows.id(position)

    def read(self, position: int) -> bytes | np.ndarray:
        return self.rows.read(position)

    def read_many(self, positions: Sequence[int]) -> np.ndarray | None:
        time.sleep(len(positions) / self.per_second)
        return self.rows.read_many(positions)


@dataclass(frozen=True)
class Cost:
    """A run past its warm-up: the driver's thread, seconds a batch, and images a second."""

    step: float
    rate: float


def whole_run(
    images: int, pool: EncoderPool | None, name: str = "pact", per_second: float | None = None
) -> Cost:
    """A run over embeddings, read here or by workers."""
    task, rows = world(images)
    method: Method = Pact(warmup=1024)
    if name == "scout":  # one fit, and then nothing but the stream
        method = Scout(growth=1e9, restarts=1, fresh_restarts=1, revise_at_end=False)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        source: Source = open_array(str(Path(folder) / "rows.npy"))
        if per_second is not None:
            source = Paced(source, per_second)

        def make(place: int, index: int) -> Stream:
            if pool is None:
                return Stream(source, None, BATCH, None, place, index, workers=1)
            return PooledStream(source, method, pool, BATCH, None, place, index)

        ticks: list[tuple[float, float]] = []

        def note(phase: str, done: int, total: int) -> None:
            if phase == "stream" and done > 1024 + BATCH * AHEAD * (pool.workers if pool else 1):
                ticks.append((time.thread_time(), time.perf_counter()))

        run_to_folder(method, task, make, Path(folder) / "out", {}, progress=note)
    first, last, batches = ticks[0], ticks[-1], len(ticks) - 1
    return Cost((last[0] - first[0]) / batches, BATCH * batches / (last[1] - first[1]))


def fit_seconds() -> float:
    """Scout's fit to a full reservoir."""
    task, rows = world(8192)
    method = Scout(warmup=len(rows))
    method.start(task)
    ids = tuple(map(str, range(len(rows))))
    began = time.thread_time()
    method.observe(Batch(ids, 0, tuple(range(len(rows))), len(rows), features=rows))
    return time.thread_time() - began


def world(images: int) -> tuple[Task, np.ndarray]:
    """Embeddings of as many clusters as there are categories."""
    rng = np.random.default_rng(0)
    centres, words = (unit(rng.normal(size=(n, DIM))) for n in (KNOWN + NOVEL, WORDS))
    rows = centres[rng.integers(0, len(centres), images)]
    rows = unit(rows + 0.03 * rng.normal(size=rows.shape))
    names = tuple(f"thing {k}" for k in range(KNOWN))
    return Task(names, centres[:KNOWN], NOVEL, word_embeddings=words), rows


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def checked(images: int, most: int) -> None:
    """Whole runs beside the model and the simulation."""
    print(f"\n| workers | each, images/s | model | simulated | measured, {images:,} images |")
    print("|---:|---:|---:|---:|---:|")
    for per_second in (500.0, 20_000.0):
        alone = 0.0
        for workers in [w for w in (1, 2, 4, 8) if w <= most]:
            with EncoderPool(None, workers) as pool:
                pool.processes()
                count = images if per_second > 1000 else min(images, 4096 + 2048 * workers)
                found = whole_run(count, pool, "pact", per_second)
            alone = alone or found.rate  # what one worker gave, with all that Ray adds
            speed, step = model(workers, alone, found.step), found.step
            print(
                f"| {workers} | {alone:,.0f} | {speed:,.0f} | "
                f"{simulated(workers, alone, step):,.0f} | {found.rate:,.0f} |",
                flush=True,
            )


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
    parser.add_argument("--most", type=int, default=8, help="workers of the runs that are checked")
    parser.add_argument("--per-worker", type=float, nargs="+", default=[25.0, 1000.0])
    args = parser.parse_args()
    with EncoderPool(None, 2) as pool:
        pool.processes()
        steps = {
            name: (whole_run(args.images, None, name).step, whole_run(args.images, pool, name).step)
            for name in ("pact", "scout")
        }
    print(f"ordered step, {KNOWN} known + {NOVEL} novel: {BATCH} images, the driver's thread")
    for name, (here, from_ray) in steps.items():
        print(
            f"  {name:6} {1000 * here:6.2f} ms, with batches from workers {1000 * from_ray:.2f} ms"
        )
    print(f"  a fit of scout to its reservoir: {fit_seconds():.1f} s")
    window = AHEAD * BATCH * DIM * 4
    print(f"driver memory: {window / 1e6:.1f} MB a worker for the window, and for every sample")
    each = BYTES_PER_NAME + BYTES_PER_PLACE
    print(f"about {each} bytes for its id and its place: {each * 10**9 / 1e9:.0f} GB for 1e9")
    for rate in args.per_worker:
        table(rate, steps["scout"][1])
    checked(args.images, args.most)


if __name__ == "__main__":
    main()
