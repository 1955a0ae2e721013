"""What throughput mode costs in accuracy: `--sync-every n` beside the exact engine.

    python benchmarks/sync_every.py --features FOLDER [--seeds 3] [--only iconshift|cifar10-c|drift]

PACT without re-alignment on the features of IconShift and CIFAR-10-C under the embedded model (as
`benchmarks/discovery.py run --features FOLDER` keeps them), and on a generated stream of 200,000
embeddings of 100 classes whose directions drift. The shards of a round are observed one after the
other in this process: answers depend on the shards, not on the workers. Scout has no such table:
its workers answer from the last fit, and the answers are those of the exact engine.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttgcd.engines.local import run
from ttgcd.engines.rounds import RoundStream, Shard, ShardDone, observe_shard
from ttgcd.evaluation import score_stream
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.streams.arrays import open_array
from ttgcd.streams.base import Source
from ttgcd.streams.stream import Stream


@dataclass(frozen=True)
class World:
    source: Source
    labels: np.ndarray
    task: Task
    batch_size: int
    warmup: int
    shuffled: bool = True


def answers(world: World, shards: int, sync_every: int) -> np.ndarray:
    """All, Known and Novel accuracy in percent; no shards is the exact engine."""
    task, source = world.task, world.source
    method = Pact(warmup=world.warmup)

    def open_stream() -> Stream:
        seed = task.seed if world.shuffled else None
        return Stream(source, None, world.batch_size, seed, workers=0)

    def observe(given: Sequence[Shard]) -> list[ShardDone]:
        return [observe_shard(copy(method, task), open_stream(), None, s) for s in given]

    stream: Stream = open_stream()
    if shards:
        stream = RoundStream(stream, method, observe, shards, sync_every)
    result = run(method, task, stream)
    scores = score_stream(result.category, world.labels[result.positions], task.n_known)
    return 100 * np.array([scores.all, scores.known, scores.novel])


def copy(method: Pact, task: Task) -> Pact:
    made = Pact(**method.config())
    made.start(task)
    return made


def kept(folder: Path, benchmark: str, seeds: int) -> list[World]:
    """The streams of a benchmark, from the features that were kept of them."""
    files = sorted(folder.glob(f"{benchmark}-*.npz"))
    if not files:
        raise SystemExit(f"no features of {benchmark} in {folder}: see benchmarks/discovery.py")
    batch_size, warmup = (64, 1024) if benchmark == "cifar10-c" else (16, 256)
    worlds = []
    for file, seed in itertools.product(files, range(seeds)):
        with np.load(file) as saved:
            anchors, labels = saved["anchors"], saved["labels"]
            known = tuple(f"class {k}" for k in range(len(anchors)))
            novel = int(labels.max()) + 1 - len(known)
            task = Task(known, anchors, novel, logit_scale=float(saved["scale"]), seed=seed)
            source = open_array(saved["features"])
            worlds.append(World(source, labels, task, batch_size, warmup))
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
    return World(open_array(rows.astype(np.float32)), labels, task, 128, 1024, False)


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
    parser.add_argument("--features", type=Path, help="folder of kept features")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=("iconshift", "cifar10-c", "drift"))
    args = parser.parse_args()
    for benchmark in ("iconshift", "cifar10-c"):
        if args.only not in (None, benchmark):
            continue
        worlds = kept(args.features, benchmark, args.seeds)
        title = f"{benchmark}, {len(worlds)} streams and seeds, batches of {worlds[0].batch_size}"
        table(title, worlds, [(shards, n) for shards in (2, 8) for n in (1, 4, 16)])
    if args.only in (None, "drift"):
        far = [drifting(seed) for seed in range(args.seeds)]
        grid = [(shards, n) for shards in (2, 16, 128) for n in (1, 8)]
        table(f"200,000 drifting embeddings, {len(far)} seeds, batches of 128", far, grid)


if __name__ == "__main__":
    main()
