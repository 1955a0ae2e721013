"""Kill workers and whole nodes of a Ray cluster while a run goes on; compare with the local run.

    python -m faults.cluster [--kills 20] [--seed 0] [--method scout]

Several raylets live in this machine (``ray.cluster_utils.Cluster``). Every few moments a worker
process or a raylet with all its workers dies, or a worker is frozen for a while, which is the
slowest of stragglers. All answers, however small, lie in the object store of the node that made
them: a lost raylet takes those with it that were not fetched yet.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.engines.folder import run_to_folder
from ttgcd.methods.base import Method, Task
from ttgcd.methods.pact import Pact
from ttgcd.methods.scout import Scout
from ttgcd.streams.base import Rejection, Source
from ttgcd.streams.stream import Stream
from ttgcd.testing.model import TinyVLM, image_world

_FILES = ("assignments.parquet", "rejected.csv", "state/state.safetensors", "state/state.json")
_BATCH = 32
_STORE = 80 * 2**20
_FROZEN = 4.0


@dataclass
class Losses:
    """What the kills have done."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    repeated: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    other_bytes: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        """Workers and raylets; those that were frozen come on top."""
        return self.kills["workers killed"] + self.kills["raylets killed"]

    @property
    def bad(self) -> int:
        return len(self.other_bytes)

    def lines(self) -> Iterator[str]:
        what = ", ".join(f"{count} {name}" for name, count in sorted(self.kills.items()))
        yield (
            f"cluster: {self.killed} kills ({what}) in {self.runs} runs: {self.replaced} "
            f"workers replaced, {self.repeated} ranges asked for again, {self.bad} files with "
            "other bytes"
        )
        errors = ", ".join(f"{count} {name}" for name, count in sorted(self.errors.items()))
        yield f"       what the driver heard of it: {errors}"
        yield from (f"       {name} differs" for name in self.other_bytes[:10])


class SlowPictures(Source):
    """Pictures that take a while to read, a few of which cannot be read at all."""

    kind = "images"

    def __init__(self, count: int, seconds: float) -> None:
        self.images = image_world(count, 5)[0].permute(0, 2, 3, 1).numpy()
        self.seconds = seconds

    def __len__(self) -> int:
        return len(self.images)

    def id(self, position: int) -> str:
        return f"{position:05d}.png"

    def read(self, position: int) -> np.ndarray:
        time.sleep(self.seconds)
        if position % 251 == 3:
            raise Rejection("not an image, says the campaign")
        return self.images[position]


def campaign(
    kills: int,
    work: Path,
    seed: int = 0,
    images: int = 3000,
    seconds: float = 0.004,
    method: str = "scout",
    tell: Callable[[str], None] = lambda line: None,
) -> Losses:
    """Runs on two workers, each disturbed until it ends, until there were ``kills`` kills."""
    from ray.cluster_utils import Cluster

    from ttgcd.engines.cluster.pool import EncoderPool, model_of, require_ray

    # Or small answers would come with the reply. Ray reads no name in capitals.
    os.environ["RAY_max_direct_call_object_size"] = "0"  # noqa: SIM112
    ray = require_ray()
    vlm = TinyVLM(0)
    known = ("red", "green", "blue")
    anchors = vlm.encode_texts([f"a photo of a {name}." for name in known]).numpy()
    task = Task(known=known, anchors=anchors, novel=2, vlm=vlm)
    losses, rng = Losses(), random.Random(seed)
    _run(work / "local", method, task, SlowPictures(images, 0.0), None)
    source = SlowPictures(images, seconds)
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": _STORE,
            "include_dashboard": False,
        },
    )
    try:
        nodes = [_add_node(cluster) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        with EncoderPool(model_of(vlm), 2, address=cluster.address) as pool:
            pool.processes()
            while losses.killed < kills:
                killer = _Killer(cluster, nodes, rng, losses, kills)
                out = work / f"run-{losses.runs}"
                stream = _run(out, method, task, source, pool, killer)
                losses.runs += 1
                losses.repeated += stream.repeated
                losses.errors += stream.losses
                for name in _FILES:
                    here = (work / f"run-{losses.runs - 1}" / name).read_bytes()
                    if here != (work / "local" / name).read_bytes():
                        losses.other_bytes.append(f"run {losses.runs}: {name}")
                tell(f"{losses.killed} kills in {losses.runs} runs, {losses.bad} faults")
            losses.replaced = pool.replaced
    finally:
        ray.shutdown()
        cluster.shutdown()
    return losses


def _method(name: str) -> Method:
    if name == "scout":
        return Scout(warmup=128, growth=2.0, restarts=2, fresh_restarts=1, words=0)
    return Pact(warmup=128, epochs=2, optimiser="adam", realign_batch_size=32)


def _run(
    out: Path, name: str, task: Task, source: Source, pool: Any, killer: _Killer | None = None
) -> Any:
    method = _method(name)
    made = []

    def make(place: int, index: int) -> Stream:
        if pool is None:
            assert task.vlm is not None
            made.append(Stream(source, task.vlm.preprocess, _BATCH, 5, place, index))
        else:
            from ttgcd.engines.cluster.stream import PooledStream

            made.append(PooledStream(source, method, pool, _BATCH, 5, place, index, 1.0))
        return made[-1]

    run_to_folder(method, task, make, out, {"input": source.fingerprint()}, progress=killer)
    return made[-1]


def _add_node(cluster: Any, tries: int = 5) -> Any:
    """On a busy machine a node may take longer to start than Ray waits."""
    for left in reversed(range(tries)):
        try:
            return cluster.add_node(num_cpus=1, object_store_memory=_STORE)
        except Exception:  # Ray raises no narrower one here
            if not left:
                raise
    raise AssertionError("unreachable")


class _Killer:
    """Every few moments something dies; called after every batch, in the main thread, the only one
    in which Ray starts nodes."""

    def __init__(
        self, cluster: Any, nodes: list[Any], rng: random.Random, losses: Losses, most: int
    ) -> None:
        self._cluster, self._nodes, self._rng = cluster, nodes, rng
        self._losses, self._kills, self._most = losses, losses.kills, most
        self._due = time.monotonic()

    def __call__(self, phase: str, done: int, total: int) -> None:
        if time.monotonic() < self._due or self._losses.killed >= self._most:
            return
        self._due = time.monotonic() + self._rng.uniform(0.3, 2.0)
        kind = self._rng.choice(("worker", "worker", "raylet", "freeze"))
        number = self._rng.randrange(len(self._nodes))
        if kind == "raylet":
            self._cluster.remove_node(self._nodes[number], allow_graceful=False)
            self._nodes[number] = _add_node(self._cluster)
            self._kills["raylets killed"] += 1
            return
        workers = worker_processes(self._nodes[number])
        if not workers:
            return  # it is on its way
        if kind == "worker":
            os.kill(workers[0], signal.SIGKILL)
            self._kills["workers killed"] += 1
        else:
            os.kill(workers[0], signal.SIGSTOP)
            self._kills["workers frozen"] += 1
            threading.Timer(_FROZEN, _wake, [workers[0]]).start()


def _wake(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # killed meanwhile
        os.kill(process, signal.SIGCONT)


def worker_processes(node: Any) -> list[int]:
    """Processes of our workers below a node's raylet."""
    raylets = node.all_processes.get("raylet", [])
    if not raylets:
        return []  # it has just died, or is on its way
    raylet = raylets[0].process.pid
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            name = (entry / "cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
        if parent == raylet and name.startswith(b"ray::Worker"):
            found.append(int(entry.name))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.cluster")
    parser.add_argument(
        "--kills", type=int, default=20, help="of workers and raylets (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", choices=("scout", "pact"), default="scout")
    parser.add_argument("--images", type=int, default=3000, help="of each run")
    args = parser.parse_args()
    begun = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begun:7.0f} s  {line}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as work:
        losses = campaign(
            args.kills, Path(work), args.seed, args.images, method=args.method, tell=tell
        )
    print("\n".join(losses.lines()))
    print(f"faults: {losses.bad} in {time.monotonic() - begun:.0f} s")
    return 1 if losses.bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
