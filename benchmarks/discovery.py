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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
SECOND = {"line": "emoji", "solid": "multicolour", "fog": "jpeg_compression", "frost": "contrast"}


@dataclass(frozen=True)
class Job:
    scenario: str
    benchmark: str
    stream: str
    method: str
    seed: int


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


# -- scenarios: features, labels, known classes, seed -> order and choice of samples ---------------

Arrange = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def shuffled(labels: np.ndarray, n_known: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(len(labels))


def by_class(labels: np.ndarray, n_known: int, rng: np.random.Generator) -> np.ndarray:
    """A folder in its own order: class after class, the classes in a random order."""
    place = rng.permutation(int(labels.max()) + 1)
    order = rng.permutation(len(labels))
    return order[np.argsort(place[labels[order]], kind="stable")]


def late(labels: np.ndarray, n_known: int, rng: np.random.Generator) -> np.ndarray:
    """Three novel classes in ten appear only in the second half."""
    order, coming = rng.permutation(len(labels)), late_classes(labels, n_known)
    early = order[~np.isin(labels[order], coming)][: len(order) // 2]
    return np.concatenate([early, rng.permutation(np.setdiff1d(order, early))])


def late_classes(labels: np.ndarray, n_known: int) -> np.ndarray:
    novel = np.unique(labels[labels >= n_known])
    return np.random.default_rng(1).choice(novel, max(1, round(0.3 * len(novel))), replace=False)


def some_novel(count: int) -> Arrange:
    def arrange(labels: np.ndarray, n_known: int, rng: np.random.Generator) -> np.ndarray:
        novel = np.unique(labels[labels >= n_known])
        chosen = rng.choice(novel, min(count, len(novel)), replace=False)
        kept = np.flatnonzero((labels < n_known) | np.isin(labels, chosen))
        return rng.permutation(kept)

    return arrange


def long_tail(labels: np.ndarray, n_known: int, rng: np.random.Generator) -> np.ndarray:
    """Class sizes fall to a tenth from the first to the last, in a random order of classes."""
    classes, kept = rng.permutation(np.unique(labels)), []
    for rank, k in enumerate(classes):
        mine = rng.permutation(np.flatnonzero(labels == k))
        share = 0.1 ** (rank / max(1, len(classes) - 1))
        kept.append(mine[: max(1, round(share * len(mine)))])
    return rng.permutation(np.concatenate(kept))


SCENARIOS: dict[str, Arrange] = {
    "shuffled": shuffled,
    "sorted": by_class,
    "late": late,
    "long tail": long_tail,
    "drift": shuffled,
    **{f"L = {count}": some_novel(count) for count in (0, 1, 3, 5, 20)},
}


#: scenarios that make sense on one benchmark only
ONLY = {"L = 3": "cifar10-c", "L = 5": "iconshift", "L = 20": "iconshift", "late": "iconshift"}


def jobs(args: argparse.Namespace) -> Iterator[Job]:
    """What is asked for; seed by seed, so that a run that was stopped has whole tables."""
    streams = {"iconshift": STYLES, "cifar10-c": load_benchmark("cifar10-c", args.data).streams}
    for scenario in args.scenarios:
        for seed in range(args.seeds if scenario == "shuffled" else 1):
            for benchmark in DEVELOPMENT:
                if ONLY.get(scenario, benchmark) != benchmark:
                    continue
                for stream in streams[benchmark]:
                    if scenario == "drift" and stream not in SECOND:
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


def load_stream(folder: Path, job: Job) -> tuple[Any, np.ndarray, np.ndarray]:
    data = np.load(folder / f"{job.benchmark}-{job.stream}.npz")
    rng, n_known = np.random.default_rng(job.seed), len(data["anchors"])
    order = SCENARIOS[job.scenario](data["labels"], n_known, rng)
    features, labels = data["features"][order], data["labels"][order]
    if job.scenario == "drift":
        other = np.load(folder / f"{job.benchmark}-{SECOND[job.stream]}.npz")
        more = rng.permutation(len(other["labels"]))[: len(labels)]
        features = np.concatenate([features, other["features"][more]])
        labels = np.concatenate([labels, other["labels"][more]])
    return data, features, labels


def measure(folder: Path, job: Job) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    data, features, labels = load_stream(folder, job)
    n_known = len(data["anchors"])
    novel = len(np.unique(labels[labels >= n_known]))
    name, told = METHODS[job.method]
    task = Task(
        known=tuple(f"class {k}" for k in range(n_known)),
        anchors=data["anchors"],
        novel=novel if told else None,
        logit_scale=float(data["scale"]),
        seed=job.seed,
        word_embeddings=data["words"][:1500],
    )
    options = {"warmup": 1024} if name in ("scout", "pact") else {}
    method = load_method(name, **fit_warmup(options, len(labels)))
    first, last, store = Twice(len(labels)), Collector(), FeaturesInMemory()
    session = Session(method, task, [first, last, store], store=store)
    began = time.perf_counter()
    session.drive(batches(features))
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
        coming = late_classes(labels, n_known)
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


# -- tables ---------------------------------------------------------------------------------------

GROUPS = {
    "IconShift, development": ("iconshift", True),
    "IconShift, other": ("iconshift", False),
    "CIFAR-10-C, development": ("cifar10-c", True),
    "CIFAR-10-C, other": ("cifar10-c", False),
}


def table(args: argparse.Namespace) -> None:
    rows = read(args.out)
    for scenario in SCENARIOS:
        mine = [row for row in rows if row["scenario"] == scenario]
        if mine:
            print(f"\n### {scenario}\n")
            print_accuracy(mine)
            print_counts(mine)


def print_accuracy(rows: list[dict[str, Any]]) -> None:
    """Mean All on arrival / at the end, by group of streams, and the seconds of the largest."""
    groups = {
        title: [r for r in rows if (r["benchmark"], r["development"]) == key]
        for title, key in GROUPS.items()
    }
    groups = {title: group for title, group in groups.items() if group}
    print("| mean All, arrival / final | " + " | ".join(groups) + " | seconds |")
    print("|---|" + "---:|" * (len(groups) + 1))
    for method in METHODS:
        cells = []
        for group in groups.values():
            mine = [r for r in group if r["method"] == method]
            first, last = ([r[when][0] for r in mine] for when in ("arrival", "final"))
            if not mine:
                cells.append("")
            elif first == last or METHODS[method][0] in ("kmeans", "ss-kmeans"):
                cells.append(f"{np.mean(last):.1f}")
            else:
                cells.append(f"{np.mean(first):.1f} / {np.mean(last):.1f}")
        seconds = [r["seconds"] for r in rows if r["method"] == method]
        if seconds:
            print(f"| {method} | " + " | ".join(cells) + f" | {max(seconds):.0f} |")


def print_counts(rows: list[dict[str, Any]]) -> None:
    """How well L was counted, how often ids moved, which late classes were found."""
    counted = [r for r in rows if r["method"] == "scout, L unknown"]
    for held, group in (
        ("development", [r for r in counted if r["development"]]),
        ("other", [r for r in counted if not r["development"]]),
    ):
        judged = [r for r in group if r["judged"]]
        if not judged:
            continue
        true, found = (np.array([r[k] for r in judged]) for k in ("novel", "found"))
        inside = np.mean([r["range"][0] <= r["novel"] <= r["range"][1] for r in judged])
        error = np.median(np.abs(found - true) / np.maximum(true, 1))
        print(
            f"\nL unknown, {held}: {len(judged)} of {len(group)} streams judged, "
            f"median found {np.median(found):.0f} of {np.median(true):.0f}, median relative error "
            f"{100 * error:.0f} %, the range holds the truth on {100 * inside:.0f} %."
        )
    scouts = [r["moved"] for r in rows if r["method"] == "scout" and len(r["moved"]) > 1]
    if scouts:
        within, last = ([m for r in scouts for m in part(r)] for part in (_within, _last))
        print(
            f"\nOf the reservoir, {100 * np.mean(within):.1f} % change id at a refit within the "
            f"stream, {100 * np.mean(last):.1f} % at the last one, after which everything is "
            "answered again (means)."
        )
    for method in METHODS:
        late_rows = [r for r in rows if r["method"] == method and "late" in r]
        if late_rows:
            found, all_late = (sum(r[k] for r in late_rows) for k in ("late_found", "late"))
            print(f"\n{method}: {found} of {all_late} late classes own a category at the end.")


def _within(moved: list[float]) -> list[float]:
    return moved[:-1]


def _last(moved: list[float]) -> list[float]:
    return moved[-1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--data", type=Path, help="folder that holds CIFAR-10-C")
    parser.add_argument("--features", type=Path, default=Path("features"))
    parser.add_argument("--out", type=Path, default=Path("results/discovery.jsonl"))
    parser.add_argument("--scenarios", type=lambda s: s.split(","), default=list(SCENARIOS))
    parser.add_argument("--methods", type=lambda s: s.split("+"), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    run(args) if args.action == "run" else table(args)


if __name__ == "__main__":
    main()
