"""How much of PACT's stage two hangs on where the novel prototypes begin.

    python benchmarks/novel_seeds.py --benchmark iconshift --streams line,solid [--data DATA]

The pretrained encoder, no re-alignment, three seeds. The same stream is answered from single
samples (the paper's k-means++), from refined seeds (preset `robust`), and from the true class means
of the buffer, which uses labels and shows what better seeds could bring at most. Beside it: how
near a novel sample is to another of its class and to its class mean, and how near a known sample
is to the mean of its class.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
import torch

from ttgcd.bench.images import Decoded, as_decoded
from ttgcd.bench.measure import Bench, fit_warmup
from ttgcd.bench.results import Job
from ttgcd.engines.local import run
from ttgcd.evaluation import score_stream
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.methods.registry import PRESETS
from ttgcd.prototypes.bank import PrototypeBank, normalise
from ttgcd.streams.base import Batch
from ttgcd.vlm.anchors import text_anchors


@dataclasses.dataclass(kw_only=True)
class ToldSeeds(Pact):
    """PACT that is told the true novel class means of its buffer."""

    truth: tuple[int, ...] = ()

    def _build_bank(
        self, features: np.ndarray, labels: np.ndarray, margins: np.ndarray
    ) -> PrototypeBank:
        bank = super()._build_bank(features, labels, margins)
        truth = np.array(self.truth[: len(features)])
        novel = [k for k in np.unique(truth) if k >= self.task.n_known]
        bank.novel = normalise(np.stack([features[truth == k].mean(axis=0) for k in novel]))
        return bank


def stream_of(features: np.ndarray) -> list[Batch]:
    parts = []
    for start in range(0, len(features), 128):
        numbers = tuple(range(start, min(start + 128, len(features))))
        rows = features[start : start + 128]
        parts.append(
            Batch(tuple(map(str, numbers)), start, numbers, numbers[-1] + 1, features=rows)
        )
    return parts


def nearness(features: np.ndarray, labels: np.ndarray, n_known: int) -> list[float]:
    """Mean cosine of novel samples to others of their class, and of all to their class mean."""
    single, to_mean = [], {True: [], False: []}
    for k in np.unique(labels):
        mine = features[labels == k]
        if len(mine) < 2:
            continue
        mean = mine.sum(axis=0)
        to_mean[k >= n_known].append((mine @ normalise(mean[None])[0]).mean())
        if k >= n_known:
            single.append((mean @ mean - len(mine)) / (len(mine) * (len(mine) - 1)))
    return [float(np.mean(x)) for x in (single, to_mean[True], to_mean[False])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--benchmark", default="iconshift")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--streams", required=True)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    bench = Bench(args.data)
    vlm = bench.vlm(args.model)
    benchmark = bench.benchmark(args.benchmark, {})
    n_known, names = len(benchmark.known), ("paper", "robust", "true class means")
    anchors = text_anchors(vlm, benchmark.known)
    table = {name: [] for name in names}
    cosines = []
    for stream in args.streams.split(","):
        job = Job("", "", args.benchmark, stream, "pact", args.model, 0, limit=args.limit)
        source, labels, _ = bench.source(job, vlm)
        task = Task(benchmark.known, anchors, len(benchmark.novel), vlm=vlm)
        assert isinstance(source, Decoded), "the stream must fit into memory"
        frozen = vlm.encoder()(as_decoded(source.images))
        cosines.append(nearness(frozen, labels, n_known))
        warmup = fit_warmup({"warmup": 1024}, len(labels))["warmup"]
        for seed in range(args.seeds):
            order = np.random.default_rng(seed).permutation(len(labels))
            features, truth = frozen[order], labels[order]
            told = ToldSeeds(warmup=warmup, truth=tuple(truth.tolist()))
            robust = Pact(warmup=warmup, **PRESETS["robust"].config)
            for name, method in zip(names, (Pact(warmup=warmup), robust, told), strict=True):
                rows = dataclasses.replace(task, vlm=None, logit_scale=vlm.logit_scale, seed=seed)
                answer = run(method, rows, stream_of(features)).category
                scores = score_stream(answer, truth, n_known).as_percent()
                lost = 100 * float((answer[truth >= n_known] < n_known).mean())
                table[name].append([scores["all"], scores["known"], scores["novel"], lost])
    print(f"{args.benchmark} {args.streams}, {args.model}, {args.seeds} seeds, mean")
    print(f"{'novel seeds':18} {'All':>6} {'Known':>6} {'Novel':>6}  novel given a known id, %")
    for name, rows in table.items():
        print(f"{name:18} " + " ".join(f"{value:6.1f}" for value in np.mean(rows, axis=0)))
    single, novel, known = np.mean(cosines, axis=0)
    print(f"cosine of a novel sample to another of its class {single:.2f}, to its mean {novel:.2f}")
    print(f"cosine of a known sample to the mean of its class {known:.2f}")


if __name__ == "__main__":
    main()
