"""The columns of a table: the rows they take, what they read, the published figure beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ttgcd.bench.experiment import Experiment
from ttgcd.bench.results import Row

NAN = float("nan")
AVERAGE = "average"
HALVES = "halves"
#: All after so many corrections of a simulated user (``ttgcd.bench.clicks``).
CLICKS = {f"after_{n}": n for n in (0, 5, 10, 20, 50)}
METRIC_NAMES = {
    **{metric: f"{n} corrections" for metric, n in CLICKS.items()},
    "all": "All",
    "known": "Known",
    "novel": "Novel",
    "ms_per_batch": "ms/batch",
    "forward_ms": "forward ms",
    "other_ms": "+ the rest ms",
    "forwards": "x forward",
    "stream_gb": "stream GB",
    "memory_ratio": "x encoder's GB",
    "warmup_s": "warm-up s",
    "warmup_gb": "warm-up GB",
    "total_s": "whole stream s",
}


@dataclass(frozen=True)
class Column:
    """Which rows a column takes, what it reads in them, and where the published figure stands."""

    title: str
    metric: str
    benchmark: str | None
    stream: str | None = None
    model: str | None = None
    decile: int | None = None
    published: str | None = None

    def takes(self, row: Row) -> bool:
        return (
            self.benchmark in (None, row["benchmark"])
            and self.stream in (None, row["stream"])
            and self.model in (None, row["model"])
        )

    def read(self, row: Row) -> float:
        if self.decile is not None:
            value = row["deciles"][self.decile]
        elif self.metric == HALVES:
            half = len(row["deciles"]) // 2
            value = fmean(row["deciles"][half:]) - fmean(row["deciles"][:half])
        else:
            value = row["metrics"].get(self.metric, row.get(self.metric))
        return NAN if value is None else float(value)


def layout(
    experiment: Experiment, rows: Sequence[Row], published: dict[str, Any]
) -> Iterable[tuple[str, list[Column]]]:
    benchmarks = in_order((t.name for t in experiment.targets), (r["benchmark"] for r in rows))
    names = {metric: METRIC_NAMES.get(metric, metric) for metric in experiment.metrics}
    by = experiment.columns
    if by == "stream":
        for benchmark in benchmarks:
            ours = [r["stream"] for r in rows if r["benchmark"] == benchmark]
            told = published_columns(published) if benchmark == experiment.targets[0].name else []
            streams = in_order([c for c in told if c != AVERAGE], ours)
            for metric, name in names.items():
                columns = [
                    Column(stream, metric, benchmark, stream=stream, published=stream)
                    for stream in streams
                ]
                average = Column("Average", metric, benchmark, published=AVERAGE)
                yield f"{benchmark}, {name}", [*columns, average]
        return
    for benchmark in benchmarks:
        here = [row for row in rows if row["benchmark"] == benchmark]
        if by == "decile":
            deciles = [
                Column(str(part + 1), "all", benchmark, decile=part)
                for part in range(len(here[0]["deciles"]) if here else 0)
            ]
            yield f"{benchmark}, All by decile of the stream", deciles
            continue
        models = in_order(experiment.models, (row["model"] for row in here))
        told = published_columns(published)
        for model in models if by == "model" else [None]:
            if model is not None and not (model in told or any(r["model"] == model for r in here)):
                continue
            # A model of the user's own stands beside the figures of the paper's first model.
            beside = benchmark if model is None else model if model in told else models[0]
            columns = [
                Column(name, metric, benchmark, model=model, published=beside)
                for metric, name in names.items()
            ]
            yield benchmark if model is None else f"{benchmark}, {model}", columns


def published_columns(published: dict[str, Any]) -> list[str]:
    return in_order(column for row in published["values"].values() for column in row)


def in_order(*names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for part in names for name in part))
