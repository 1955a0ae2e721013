"""What a bench run would do, and how long it would take at the rates measured before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ttgcd.bench.experiment import Experiment, experiment_files
from ttgcd.bench.results import Job, Row, read_results
from ttgcd.bench.runner import Say, Settings, is_cost, plan, rows_by_run


@dataclass
class Part:
    """The rows of one method on one benchmark. ``seconds`` is None without a rate to go by."""

    benchmark: str
    label: str
    rows: int = 0
    there: int = 0
    images: int = 0
    seconds: float | None = 0.0


@dataclass
class Forecast:
    """The plan of a run."""

    experiment: str
    parts: list[Part]

    def text(self) -> str:
        width = max(len(part.label) for part in self.parts)
        lines = [f"{self.experiment}: the plan; nothing is run"]
        for part in self.parts:
            left = part.rows - part.there
            time = "" if not left else ", " + _time(part.seconds)
            lines.append(
                f"  {part.benchmark:12} {part.label:{width}}  {part.rows:4} rows, {part.there:4} "
                f"there or copied, {left:4} to run, {part.images:9,} images{time}"
            )
        rows, there = sum(p.rows for p in self.parts), sum(p.there for p in self.parts)
        known = [p.seconds for p in self.parts if p.seconds is not None]
        without = sum(p.seconds is None for p in self.parts)
        total = f"in all {rows} rows, {rows - there} to run, {_time(sum(known))} in one process"
        if without:
            total += f", and {without} lines without a measured rate"
        lines.append(total)
        lines.append("rates: seconds an image of earlier rows of the same model and method")
        return "\n".join(lines)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "no rate yet"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def forecast(experiment: Experiment, settings: Settings, say: Say) -> Forecast:
    """Count what is there and what is not; open every stream, but encode nothing."""
    jobs = plan(experiment, settings, say)
    own = settings.out / f"{experiment.name}.jsonl"
    done = {row["run_id"] for row in read_results(own).rows}
    if not is_cost(experiment):  # cost copies nothing from another experiment
        done |= set(rows_by_run(own, settings.out))
    rates = _rates(
        [row for path in experiment_files(settings.out) for row in read_results(path).rows]
    )
    lengths: dict[tuple[str, str, str], int] = {}
    parts: dict[tuple[str, str], Part] = {}
    planned: set[str] = set()
    for job in jobs:
        part = parts.setdefault((job.benchmark, job.label), Part(job.benchmark, job.label))
        part.rows += 1
        if job.run_id in done or job.run_id in planned:
            part.there += 1
            continue
        planned.add(job.run_id)
        images = _images(job, settings, lengths)
        part.images += images
        rate = rates.get(_kind(job.model, job.method, job.config))
        if part.seconds is not None:
            part.seconds = None if rate is None else part.seconds + rate * images
    return Forecast(experiment.name, list(parts.values()))


def _images(job: Job, settings: Settings, lengths: dict[tuple[str, str, str], int]) -> int:
    from ttgcd.datasets import load_benchmark

    key = (job.benchmark, str(job.options), job.stream)
    if key not in lengths:
        benchmark = load_benchmark(job.benchmark, settings.data, **job.options)
        lengths[key] = len(benchmark.open_stream(job.stream)[0])
    return lengths[key] if job.limit is None else min(job.limit, lengths[key])


_Kind = tuple[str, str, bool]


def _kind(model: str, method: str, config: Mapping[str, Any]) -> _Kind:
    """What costs alike: a model, a method, and whether the encoder is re-aligned before it."""
    return model, method, "realign" in config


def _rates(rows: Sequence[Row]) -> dict[_Kind, float]:
    """Median seconds an image by kind. Work that was read back counts in full."""
    seconds: dict[_Kind, list[float]] = {}
    for row in rows:
        rate = sum(row["seconds"].values()) / row["metrics"]["samples"]
        seconds.setdefault(_kind(row["model"], row["method"], row["config"]), []).append(rate)
    return {kind: median(values) for kind, values in seconds.items()}
