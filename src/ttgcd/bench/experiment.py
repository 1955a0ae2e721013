"""An experiment is a data file: benchmarks, methods with their variants, seeds, and the table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ttgcd import data
from ttgcd.errors import InputError

NOT_IN_PAPER = "Not in the paper"
OWN = "Own"
COLUMNS = ("benchmark", "stream", "model", "decile")


@dataclass(frozen=True)
class Variant:
    """One row of a table: a method under a configuration.

    ``published`` is the row's name among the published figures; ``x`` and ``series`` place it in a
    figure. ``novel`` is "counted" where the method is to find L itself, whatever the others get.
    """

    label: str
    method: str
    config: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    published: str = ""
    x: float | None = None
    series: str = ""
    novel: str = ""

    @property
    def in_paper(self) -> bool:
        """Whether the paper has this row."""
        return not self.group.startswith(NOT_IN_PAPER) and self.group != OWN


@dataclass(frozen=True)
class Target:
    """A benchmark and which of its streams: "evaluation", "held_out" or a list of names."""

    name: str
    streams: str | tuple[str, ...] = "evaluation"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """What is run and how its table reads. ``columns`` says what stands side by side."""

    name: str
    title: str
    question: str
    targets: tuple[Target, ...]
    variants: tuple[Variant, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    columns: str = "benchmark"
    metrics: tuple[str, ...] = ("all", "known", "novel")
    novel: str = "given"  # or "estimated", or "estimated-plain" with plain k-means at any size
    published: str | None = None
    figure: str | None = None
    x_label: str = ""
    x_scale: str = "linear"
    best_of_group: bool = False
    streams: tuple[str, ...] | None = None  # only these, of whichever benchmark has them

    def select(
        self,
        methods: Sequence[str] | None = None,
        benchmarks: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        models: Sequence[str] | None = None,
        streams: Sequence[str] | None = None,
    ) -> Experiment:
        """The experiment cut to, or moved to, what the user asked for.

        Methods that the experiment does not have (``module:Class``, an entry point) are added as a
        row of their own; benchmarks that it does not have are run under the same rules.
        """
        chosen = self
        if methods is not None:
            chosen = replace(chosen, variants=_pick_variants(self.variants, methods))
        if benchmarks is not None:
            # An experiment on the held-out corruptions stays on them wherever it is moved.
            default = self.targets[0].streams
            default = default if isinstance(default, str) else "evaluation"
            own = {target.name: target for target in self.targets}
            targets = tuple(own.get(name, Target(name, default)) for name in benchmarks)
            chosen = replace(chosen, targets=targets)
        if streams is not None:
            chosen = replace(chosen, streams=tuple(streams))
        if seeds is not None:
            chosen = replace(chosen, seeds=tuple(seeds))
        if models is not None:
            chosen = replace(chosen, models=tuple(models))
        return chosen

    def streams_asked(self, benchmark: str) -> int | None:
        """How many streams of a benchmark the experiment names; None when it takes all of a kind.

        Moved to another benchmark it asks for as many there as of its own first.
        """
        named = {t.name: len(t.streams) for t in self.targets if not isinstance(t.streams, str)}
        return named.get(benchmark, next(iter(named.values()), None))

    def novel_of(self, label: str) -> str:
        """Where the method of a row has L from."""
        own = {variant.label: variant.novel for variant in self.variants}
        return own.get(label) or self.novel

    def paper_rows(self) -> Experiment:
        """The experiment without the rows that the paper does not have."""
        rows = tuple(variant for variant in self.variants if variant.in_paper)
        if not rows:
            raise InputError(f"{self.name} has no row of the paper's")
        return replace(self, variants=rows)

    def with_methods(self, methods: Sequence[str]) -> Experiment:
        """The same experiment with further methods as rows."""
        known = {variant.label for variant in self.variants}
        extra = tuple(_own_variant(name) for name in methods)
        return replace(
            self, variants=self.variants + tuple(v for v in extra if v.label not in known)
        )


def _own_variant(method: str) -> Variant:
    return Variant(label=method.rpartition(":")[2], method=method, group=OWN)


def _pick_variants(variants: Sequence[Variant], names: Sequence[str]) -> tuple[Variant, ...]:
    picked: list[Variant] = []
    for name in names:
        own = [v for v in variants if name in (v.method, v.label, v.group)]
        for variant in own or [_own_variant(name)]:
            if variant not in picked:
                picked.append(variant)
    return tuple(picked)


def experiment_names() -> list[str]:
    """All experiments that ship."""
    return sorted(path.stem for path in data.path("experiments").glob("*.json"))


def experiment_files(folder: Path) -> list[Path]:
    """Where results of the experiments are or would be; other files there are somebody else's."""
    return [folder / f"{name}.jsonl" for name in experiment_names()]


def load_experiment(name: str) -> Experiment:
    """An experiment by name, e.g. ``load_experiment("main")``."""
    path = data.path("experiments", f"{name}.json")
    if name not in experiment_names():
        raise InputError(
            f"unknown experiment {name!r}: choose one of {', '.join(experiment_names())}"
        )
    given = json.loads(path.read_text(encoding="utf-8"))
    variants = given.pop("variants")
    targets = [_target(entry) for entry in given.pop("benchmarks")]
    rows: tuple[Variant, ...] = ()
    if isinstance(variants, str):  # the rows of another experiment, and perhaps some more
        rows, variants = load_experiment(variants).variants, given.pop("more", ())
    rows += tuple(_variant(entry) for entry in variants)
    for key in ("models", "seeds", "metrics"):
        given[key] = tuple(given[key])
    return Experiment(name=name, targets=tuple(targets), variants=rows, **given)


def _target(entry: dict[str, Any]) -> Target:
    streams = entry.get("streams", "evaluation")
    return Target(
        name=entry["name"],
        streams=streams if isinstance(streams, str) else tuple(streams),
        options=entry.get("options", {}),
    )


def _variant(entry: dict[str, Any]) -> Variant:
    return Variant(**{"published": entry["label"], **entry})


def published_figures(name: str | None) -> dict[str, Any]:
    """The published figures file that stands beside an experiment; empty when there is none."""
    if name is None:
        return {"values": {}}
    found: dict[str, Any] = json.loads(
        data.path("published", f"{name}.json").read_text(encoding="utf-8")
    )
    return found
