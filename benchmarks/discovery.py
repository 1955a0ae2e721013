"""The default method beside clustering and the paper's, on streams as they come: shuffled, sorted,
with few or no novel classes, with classes that appear late, with a style that changes half-way.

    python benchmarks/discovery.py run --data DATA --features FOLDER --out results/discovery.jsonl
    python benchmarks/discovery.py table --out results/discovery.jsonl

The pretrained encoder (mini) without re-alignment: features are computed once and kept in FOLDER.
Rows that are in the file already are not measured again. Streams on which the method was developed
are marked and stand apart in every table.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from arrangements import ONLY, SCENARIOS, SEEDS, STREAMS, Job, arranged, late_classes
from discovery_tables import print_promises, print_table

from ttgcd.bench.measure import fit_warmup
from ttgcd.data.words import vocabulary
from ttgcd.datasets import load_benchmark
from ttgcd.engines.features import FeaturesInMemory
from ttgcd.engines.local import Collector
from ttgcd.engines.session import Session
from ttgcd.evaluation import split_accuracy
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Task
from ttgcd.methods.registry import load_method
from ttgcd.streams.base import Batch
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

DEVELOPMENT = {
    "iconshift": ("line", "emoji", "engraved"),
    "cifar10-c": ("fog", "gaussian_noise", "jpeg_compression"),
}
STYLES = ("duotone", "emoji", "engraved", "handdrawn", "line", "multicolour", "pixel", "solid")
#: method, whether it is told L
METHODS = {
    "scout": ("scout", True),
    "scout, L unknown": ("scout", False),
    "k-means": ("kmeans", True),
    "semi-supervised k-means": ("ss-kmeans", True),
    "PACT, no re-alignment": ("pact", True),
}


# -- features -----------------------------------------------------------------------------------


def encode(args: argparse.Namespace, benchmark: str) -> None:
    """Features, labels and texts of a benchmark, as far as they are not there yet."""
    folder = args.features
    folder.mkdir(parents=True, exist_ok=True)
    bench = load_benchmark(benchmark, args.data)
    streams = STYLES if benchmark == "iconshift" else bench.streams
    missing = [s for s in streams if not (folder / f"{benchmark}-{s}.npz").exists()]
    if not missing:
        return
    vlm = load_vlm("mini")
    encoder = vlm.encoder()
    words = text_anchors(vlm, vocabulary(), allow_duplicates=True)
    for name in missing:
        source, labels = bench.open_stream(name)
        features = np.zeros((len(source), vlm.dim), np.float32)
        for batch in Stream(source, vlm.preprocess, batch_size=256, workers=1):
            assert batch.images is not None
            features[list(batch.positions)] = encoder(batch.images)
        np.savez(
            folder / f"{benchmark}-{name}.npz",
            features=features,
            labels=labels,
            anchors=text_anchors(vlm, bench.known),
            words=words,
            scale=vlm.logit_scale,
        )
        print(f"encoded {benchmark} {name}: {len(features):,} images", flush=True)


def jobs(args: argparse.Namespace) -> Iterator[Job]:
    """What is asked for; seed by seed, so that a run that was stopped has whole tables."""
    streams = {"iconshift": STYLES, "cifar10-c": load_benchmark("cifar10-c", args.data).streams}
    for scenario in args.scenarios:
        for seed in range(args.seeds or SEEDS.get(scenario, 1)):
            for benchmark in DEVELOPMENT:
                if ONLY.get(scenario, benchmark) != benchmark:
                    continue
                for stream in streams[benchmark]:
                    if stream not in STREAMS.get(scenario, (stream,)):
                        continue
                    for method in args.methods:
                        yield Job(scenario, benchmark, stream, method, seed)


# -- one job --------------------------------------------------------------------------------------


class Twice:
    """Keeps the first answer for every sample; the collector keeps the last."""

    def __init__(self, count: int) -> None:
        self.first = np.full(count, -1, np.int64)

    def write(self, batch: Batch | None, rows: Answer) -> None:
        new = self.first[rows.index] < 0
        self.first[rows.index[new]] = rows.category[new]


def measure(folder: Path, job: Job, changed: dict[str, float] | None = None) -> dict[str, Any]:
    """The row of a job, with some of the method's options ``changed``."""
    warnings.simplefilter("ignore")
    seen = arranged(folder, job)
    labels, n_known, novel = seen.labels, seen.known, seen.novel
    name, told = METHODS[job.method]
    task = Task(
        known=tuple(f"class {k}" for k in range(n_known)),
        anchors=seen.anchors,
        novel=novel if told else None,
        logit_scale=seen.scale,
        seed=job.seed,
        word_embeddings=seen.words,
    )
    options = {"warmup": 1024, **(changed or {})} if name in ("scout", "pact") else {}
    method = load_method(name, **fit_warmup(options, len(labels)))
    first, last, store = Twice(len(labels)), Collector(), FeaturesInMemory()
    session = Session(method, task, [first, last, store], store=store)
    began = time.perf_counter()
    session.drive(batches(seen.features))
    seconds = time.perf_counter() - began
    final = last.result().category
    aliases = np.arange(max(int(first.first.max()), int(final.max())) + 1)
    for record in method.categories():
        if record.merged_into is not None:
            aliases[record.id] = record.merged_into
    arrival = aliases[first.first]
    row: dict[str, Any] = {
        **asdict(job),
        "development": job.stream in DEVELOPMENT[job.benchmark],
        "samples": len(labels),
        "known": n_known,
        "novel": novel,
        "seconds": round(seconds, 2),
    }
    for when, answers in (("arrival", arrival), ("final", final)):
        scores = split_accuracy(answers, labels, n_known)
        row[when] = [None if np.isnan(s) else round(100 * float(s), 2) for s in scores]
    if name == "scout":
        health = method.health()
        row["found"], row["range"] = health["novel"], health["novel_range"]
        row["judged"], row["moved"] = health["count_judged"], health["refits_moved"]
        row["reliability"], row["changes"] = health["names_reliability"], health["changes"]
    if job.scenario == "late":
        coming = late_classes(seen, job.seed)
        row["late"], row["late_found"] = len(coming), found_classes(final, labels, coming)
    return row


def found_classes(answers: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> int:
    """Classes that own a category: half of their samples are in one of which they are half."""
    found = 0
    for k in classes:
        mine = np.bincount(answers[labels == k])
        best = int(mine.argmax())
        found += bool(2 * mine[best] >= mine.sum() and 2 * mine[best] >= (answers == best).sum())
    return found


def batches(features: np.ndarray) -> Iterator[Batch]:
    for start in range(0, len(features), 128):
        numbers = tuple(range(start, min(start + 128, len(features))))
        rows = features[start : start + 128]
        yield Batch(tuple(map(str, numbers)), start, numbers, numbers[-1] + 1, features=rows)


def run(args: argparse.Namespace) -> None:
    for benchmark in DEVELOPMENT:
        encode(args, benchmark)
    done = {Job(**{k: row[k] for k in Job.__annotations__}) for row in read(args.out)}
    todo = [job for job in jobs(args) if job not in done]
    print(f"{len(todo)} to measure, {len(done)} done", flush=True)
    with ProcessPoolExecutor(args.jobs) as pool, args.out.open("a") as file:
        for row in pool.map(measure, [args.features] * len(todo), todo):
            file.write(json.dumps(row) + "\n")
            file.flush()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--data", type=Path, help="folder that holds CIFAR-10-C")
    parser.add_argument("--features", type=Path, default=Path("features"))
    parser.add_argument("--out", type=Path, default=Path("results/discovery.jsonl"))
    parser.add_argument("--scenarios", type=lambda s: s.split(","), default=list(SCENARIOS))
    parser.add_argument("--methods", type=lambda s: s.split("+"), default=list(METHODS))
    parser.add_argument("--seeds", type=int, help="instead of each scenario's usual number")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    if args.action == "run":
        run(args)
    else:
        print_table(read(args.out), METHODS)
        print_promises(read(args.out), Path("results"))


if __name__ == "__main__":
    main()
