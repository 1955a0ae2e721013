"""What throughput mode costs in accuracy: `--sync-every n` beside the exact engine.

    python benchmarks/sync_every.py [--batch-size 16] [--seeds 3] [--only icons|drift]

IconShift (all domains, the embedded model) and a generated stream of 200,000 embeddings of 100
classes whose directions drift. The shards of a round are observed one after the other in this
process: answers depend on the shards, not on the workers. Re-alignment is shared by all rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ttgcd.bench.encodings import keeping_encodings
from ttgcd.datasets import load_benchmark
from ttgcd.engines.local import run
from ttgcd.engines.rounds import RoundStream, Shard, ShardDone, observe_shard
from ttgcd.evaluation import score_stream
from ttgcd.methods.base import Caller, Task
from ttgcd.methods.pact import Pact
from ttgcd.streams.arrays import open_array
from ttgcd.streams.base import Source
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors


@dataclass(frozen=True)
class World:
    source: Source
    labels: np.ndarray
    task: Task
    batch_size: int
    warmup: int
    caller: Caller
    shuffled: bool = True


def answers(world: World, shards: int, sync_every: int) -> np.ndarray:
    """All, Known and Novel accuracy in percent; no shards is the exact engine."""
    task, source = world.task, world.source
    preprocess = None if task.vlm is None else task.vlm.preprocess
    method = Pact(warmup=world.warmup)

    def open_stream() -> Stream:
        seed = task.seed if world.shuffled else None
        return Stream(source, preprocess, world.batch_size, seed, workers=0)

    def observe(given: Sequence[Shard]) -> list[ShardDone]:
        encoder = None if task.vlm is None else task.encoder(method.norms())
        return [observe_shard(copy(method, task), open_stream(), encoder, s) for s in given]

    stream: Stream = open_stream()
    if shards:
        stream = RoundStream(stream, method, observe, shards, sync_every)
    result = run(method, task, stream, caller=world.caller)
    scores = score_stream(result.category, world.labels[result.positions], task.n_known)
    return 100 * np.array([scores.all, scores.known, scores.novel])


def copy(method: Pact, task: Task) -> Pact:
    made = Pact(**method.config())
    made.start(task)
    return made


def icons(batch_size: int, warmup: int, seeds: int) -> list[World]:
    vlm = keeping_encodings(load_vlm("mini"))
    benchmark = load_benchmark("iconshift", None)
    anchors = text_anchors(vlm, benchmark.known)
    worlds = []
    for stream in benchmark.streams:
        source, labels = benchmark.open_stream(stream)
        for seed in range(seeds):
            task = Task(benchmark.known, anchors, len(benchmark.novel), vlm=vlm, seed=seed)
            caller = Caller()
            caller.realigned = {}
            worlds.append(World(source, labels, task, batch_size, warmup, caller))
    return worlds


def drifting(seed: int, count: int = 200_000, classes: int = 100, dim: int = 64) -> World:
    """Half of the classes are known; every class wanders half a radian over the stream."""
    rng = np.random.default_rng(seed)
    start, aside = rng.normal(size=(2, classes, dim))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    aside -= (aside * start).sum(axis=1, keepdims=True) * start
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    labels = rng.integers(0, classes, count)
    angle = (0.5 * np.arange(count) / count)[:, None]
    centres = np.cos(angle) * start[labels] + np.sin(angle) * aside[labels]
    rows = centres + 0.14 * rng.normal(size=(count, dim))
    known = tuple(f"thing {k}" for k in range(classes // 2))
    task = Task(known, start[: len(known)].astype(np.float32), classes - len(known), seed=seed)
    return World(open_array(rows.astype(np.float32)), labels, task, 128, 1024, Caller(), False)


def table(title: str, worlds: list[World], grid: list[tuple[int, int]]) -> None:
    print(title)
    print(f"{'shards':>8} {'n':>4} {'All':>8} {'Known':>8} {'Novel':>8} {'loss of All':>12}")
    exact = np.array([answers(world, 0, 0) for world in worlds])
    _line("exact", "", exact, exact)
    for shards, sync_every in grid:
        found = np.array([answers(world, shards, sync_every) for world in worlds])
        _line(str(shards), str(sync_every), found, exact)


def _line(shards: str, sync_every: str, found: np.ndarray, exact: np.ndarray) -> None:
    all_, known, novel = np.nanmean(found, axis=0)
    lost = exact[:, 0] - found[:, 0]
    error = lost.std(ddof=1) / np.sqrt(len(lost)) if len(lost) > 1 else 0.0
    print(
        f"{shards:>8} {sync_every:>4} {all_:8.2f} {known:8.2f} {novel:8.2f} "
        f"{lost.mean():+6.2f} ± {error:.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=16, help="on IconShift")
    parser.add_argument("--warmup", type=int, default=256, help="on IconShift")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=("icons", "drift"))
    args = parser.parse_args()
    if args.only != "drift":
        worlds = icons(args.batch_size, args.warmup, args.seeds)
        grid = [(shards, n) for shards in (2, 8) for n in (1, 4, 16)]
        table(f"IconShift, {len(worlds)} streams, batches of {args.batch_size}", worlds, grid)
    if args.only == "icons":
        return
    far = [drifting(seed) for seed in range(args.seeds)]
    grid = [(shards, n) for shards in (2, 16, 128) for n in (1, 8)]
    table(f"200,000 drifting embeddings, {len(far)} seeds, batches of 128", far, grid)


if __name__ == "__main__":
    main()
