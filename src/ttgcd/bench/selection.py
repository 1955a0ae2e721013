"""The best arm of every method of a sweep, kept in a file that other experiments run with."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ttgcd.bench.experiment import Experiment, Variant
from ttgcd.bench.results import Row
from ttgcd.errors import InputError
from ttgcd.methods.registry import load_method
from ttgcd.storage.durable import write_atomic

FORMAT = 1


@dataclass(frozen=True)
class Arm:
    """One arm of a sweep: its mean All over the streams, and how many arms stood beside it."""

    method: str
    label: str
    config: dict[str, Any]
    all: float
    default: float  # All of the method as it is; NaN when that was not run
    arms: int


@dataclass(frozen=True)
class Selection:
    """What was chosen, and on what."""

    experiment: str
    model: str
    benchmark: str
    streams: tuple[str, ...]
    seeds: tuple[int, ...]
    limit: int | None
    arms: tuple[Arm, ...]

    def options(self) -> dict[str, dict[str, Any]]:
        """Options by method, for the rows of another experiment."""
        return {arm.method: arm.config for arm in self.arms}

    def text(self) -> str:
        lines = [
            f"chosen by mean All over {', '.join(self.streams)} ({self.benchmark}, {self.model}, "
            f"seed {', '.join(map(str, self.seeds))}"
            + (f", {self.limit:,} images a stream)" if self.limit else ")"),
        ]
        for arm in self.arms:
            gain = "" if math.isnan(arm.default) else f", default {arm.default:.2f}"
            lines.append(f"  {arm.label:32} All {arm.all:6.2f}{gain}  (of {arm.arms} arms)")
        return "\n".join(lines)


def select_arms(
    experiment: Experiment, rows: Sequence[Row], model: str | None, benchmark: str | None
) -> Selection:
    """The arm with the highest mean All of every group, on one model and one benchmark.

    Arms are compared on the streams and seeds that all arms of all groups have; an arm that was
    not run at all is left out. The first of equal arms wins, that is the default.
    """
    if not experiment.best_of_group:
        raise InputError(f"{experiment.name} is no sweep: choose an experiment with groups of arms")
    rows = _one_kind(experiment, rows, model, benchmark)
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        by_label.setdefault(row["label"], []).append(row)
    ran = [variant for variant in experiment.variants if variant.label in by_label]
    shared = set.intersection(
        *({(r["stream"], r["seed"]) for r in by_label[variant.label]} for variant in ran)
    )
    if not shared:
        raise InputError(f"{experiment.name}: no stream was run with every arm; run the rest first")

    def mean_all(variant: Variant) -> float:
        mine = by_label[variant.label]
        return fmean(r["metrics"]["all"] for r in mine if (r["stream"], r["seed"]) in shared)

    chosen = []
    for group in dict.fromkeys(variant.group for variant in ran):
        arms = [variant for variant in ran if variant.group == group]
        best = max(arms, key=mean_all)
        plain = next((variant for variant in arms if not variant.config), None)
        default = math.nan if plain is None else mean_all(plain)
        chosen.append(Arm(best.method, best.label, best.config, mean_all(best), default, len(arms)))
    return Selection(
        experiment.name,
        rows[0]["model"],
        rows[0]["benchmark"],
        tuple(sorted({stream for stream, _ in shared})),
        tuple(sorted({seed for _, seed in shared})),
        rows[0]["limit"],
        tuple(chosen),
    )


def _one_kind(
    experiment: Experiment, rows: Sequence[Row], model: str | None, benchmark: str | None
) -> list[Row]:
    labels = {variant.label for variant in experiment.variants}
    found = [
        row
        for row in rows
        if row["label"] in labels
        and model in (None, row["model"])
        and benchmark in (None, row["benchmark"])
    ]
    if not found:
        raise InputError(f"no row of {experiment.name} is there to choose from: run it first")
    for key, option in (("model", "--model"), ("benchmark", "--benchmark")):
        values = dict.fromkeys(row[key] for row in found)
        if len(values) > 1:
            raise InputError(f"rows of several {key}s ({', '.join(values)}): name one, {option}")
    if len({(row["limit"], str(row["options"])) for row in found}) > 1:
        raise InputError("rows with different --limit or benchmark options: keep one kind in --out")
    return found


def write_selection(selection: Selection, path: Path) -> None:
    """Write a selection as JSON."""
    arms = [
        {
            "method": arm.method,
            "label": arm.label,
            "config": arm.config,
            "all": round(arm.all, 4),
            "default": None if math.isnan(arm.default) else round(arm.default, 4),
            "arms": arm.arms,
        }
        for arm in selection.arms
    ]
    content = {
        "format": FORMAT,
        "experiment": selection.experiment,
        "model": selection.model,
        "benchmark": selection.benchmark,
        "streams": selection.streams,
        "seeds": selection.seeds,
        "limit": selection.limit,
        "chosen": arms,
    }
    try:
        write_atomic(path, (json.dumps(content, indent=1) + "\n").encode())
    except OSError as error:
        raise InputError(f"{path}: cannot write the selection ({error})") from error


def read_selection(path: Path) -> Selection:
    """Read what ``write_selection`` wrote; every configuration must still be one of its method."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise InputError(f"{path}: format {told['format']!r}, this version reads {FORMAT}")
        arms = tuple(
            Arm(
                arm["method"],
                arm["label"],
                dict(arm["config"]),
                float(arm["all"]),
                math.nan if arm["default"] is None else float(arm["default"]),
                int(arm["arms"]),
            )
            for arm in told["chosen"]
        )
        selection = Selection(
            told["experiment"],
            told["model"],
            told["benchmark"],
            tuple(told["streams"]),
            tuple(told["seeds"]),
            told["limit"],
            arms,
        )
    except OSError as error:
        raise InputError(
            f"{path}: cannot read the selection ({error}); `ttgcd bench select sweeps -o FILE` "
            "writes one"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a file of `ttgcd bench select` ({error!r})") from error
    for arm in selection.arms:
        load_method(arm.method, **arm.config)
    return selection
