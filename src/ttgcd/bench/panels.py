"""What stands in the paper's figures, as numbers: points, curves, the best baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from ttgcd.bench.experiment import Experiment, load_experiment, published_figures
from ttgcd.bench.options import base_label
from ttgcd.bench.paper_table import Block, Line, Table
from ttgcd.bench.results import Row

OURS = "PACT"
# Which experiment holds the mean All of a benchmark that a cost figure stands beside.
ACCURACY = {"domainnet": "domainnet", "iconshift": "iconshift"}


def accuracy_experiment(benchmark: str) -> str:
    return ACCURACY.get(benchmark, "main")


@dataclass(frozen=True)
class Point:
    """A method in a figure: measured here, or published."""

    label: str
    x: float
    y: float
    measured: bool
    in_paper: bool


@dataclass
class Panel:
    """Points under one title. ``best`` is the best baseline on each axis, ours and published."""

    title: str
    points: list[Point] = field(default_factory=list)

    @property
    def published(self) -> bool:
        """Whether a published figure is among them."""
        return any(not point.measured for point in self.points)

    def best(self, measured: bool) -> tuple[float, float] | None:
        """The dashed lines of the paper's trade-off figure: the seven baselines, PACT apart."""
        rivals = [
            p
            for p in self.points
            if p.measured == measured and p.in_paper and not p.label.startswith(OURS)
        ]
        return (max(p.x for p in rivals), max(p.y for p in rivals)) if rivals else None


def has(value: float) -> bool:
    return not math.isnan(value)


def measured_blocks(table: Table) -> list[Block]:
    """Blocks with a row of ours; all of them when nothing was measured at all."""
    blocks = [block for block in table.blocks if block.lines and "best arm" not in block.title]
    return [block for block in blocks if block.measured] or blocks


def shown_blocks(table: Table) -> list[Block]:
    """What was measured, then what only the paper has: its shape beside ours."""
    ours = measured_blocks(table)
    mine = {block.title for block in ours}
    rest = [b for b in table.blocks if b.title not in mine and "best arm" not in b.title]
    told = [b for b in rest if any(has(c.paper) for line in b.lines for c in line.cells)]
    return ours + told


def shown_labels(labels: Iterable[str]) -> list[str]:
    """Without rows beside which one with other options stands, as a baseline's selected arm does:
    a figure shows that in their place."""
    every = list(dict.fromkeys(labels))
    replaced = {base_label(label) for label in every if base_label(label) != label}
    return [label for label in every if label not in replaced]


def tradeoff_panel(experiment: Experiment, blocks: Sequence[Block]) -> Panel:
    """Known against Novel, the mean over the benchmarks: one point a method.

    A method that some of the benchmarks lack has no mean to show.
    """
    names = ", ".join(block.title for block in blocks)
    panel = Panel(f"mean over {names}" if len(blocks) > 1 else names)
    outside = {v.label for v in experiment.variants if not v.in_paper}
    for label in shown_labels(line.label for block in blocks for line in block.lines):
        in_paper = base_label(label) not in outside
        lines = [_line(block, label) for block in blocks]
        for measured in (True, False):
            xs = [_value(b, line, "Known", measured) for b, line in zip(blocks, lines)]
            ys = [_value(b, line, "Novel", measured) for b, line in zip(blocks, lines)]
            if (measured or in_paper) and all(map(has, [*xs, *ys])):
                panel.points.append(Point(label, fmean(xs), fmean(ys), measured, in_paper))
    return panel


def _line(block: Block, label: str) -> Line | None:
    return next((line for line in block.lines if line.label == label), None)


def _value(block: Block, line: Line | None, column: str, measured: bool) -> float:
    if line is None:
        return math.nan
    cell = line.cells[block.columns.index(column)]
    return cell.mean if measured else cell.paper


@dataclass(frozen=True)
class VariedCurve:
    """A metric on one benchmark against the number that an experiment varies."""

    block: str
    series: str  # empty where series that the paper does not tell apart share its figures
    column: str
    points: tuple[tuple[float, float], ...]
    measured: bool


def varied_curves(experiment: Experiment, blocks: Sequence[Block]) -> list[VariedCurve]:
    """Ours by series, and the published figures once."""
    variants = {v.label: v for v in experiment.variants if v.x is not None}
    curves = []
    for block in blocks:
        for place, column in enumerate(block.columns):
            told: dict[tuple[tuple[float, float], ...], list[str]] = {}
            for series in dict.fromkeys(v.series for v in variants.values()):
                ours, paper = [], []
                for line in block.lines:
                    variant = variants.get(line.label)
                    if variant is not None and variant.series == series and variant.x is not None:
                        ours.append((variant.x, line.cells[place].mean))
                        paper.append((variant.x, line.cells[place].paper))
                points = _drawable(ours)
                if points:
                    curves.append(VariedCurve(block.title, series, column, points, True))
                points = _drawable(paper)
                if points:
                    told.setdefault(points, []).append(series)
            for points, owners in told.items():
                series = owners[0] if len(owners) == 1 else ""
                curves.append(VariedCurve(block.title, series, column, points, False))
    return curves


def _drawable(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    return tuple(sorted(point for point in points if has(point[1])))


def time_panels(
    experiment: Experiment, table: Table, rows: Sequence[Row], accuracy: Sequence[Row]
) -> list[Panel]:
    """Time of a batch against the mean All over all streams of the benchmark.

    The time is of one stream, the accuracy of all: ``accuracy`` are the rows of the experiment that
    has them (``accuracy_experiment``). A method without such rows is left out.
    """
    panels = []
    outside = {v.label for v in experiment.variants if not v.in_paper}
    for block in table.blocks:
        benchmark = block.title
        panel = Panel(f"{benchmark}: All is the mean over its streams")
        name = accuracy_experiment(benchmark)
        published = published_figures(load_experiment(name).published)["values"]
        column = "average" if benchmark == "domainnet" else benchmark
        place = block.columns.index("ms/batch")
        for line in block.lines:
            cell = line.cells[place]
            mine = [r for r in rows if r["label"] == line.label and r["benchmark"] == benchmark]
            if has(cell.mean) and mine:
                mean = mean_all(accuracy, line.label, benchmark, mine[0]["model"])
                if mean is not None:
                    in_paper = base_label(line.label) not in outside
                    panel.points.append(Point(line.label, cell.mean, mean, True, in_paper))
            told = published.get(line.label, {}).get(column, {}).get("all")
            if has(cell.paper) and told is not None:
                figure = told[0] if isinstance(told, list) else told
                panel.points.append(Point(line.label, cell.paper, figure, False, True))
        if panel.points:
            panels.append(panel)
    return sorted(panels, key=lambda panel: not any(point.measured for point in panel.points))


def mean_all(rows: Sequence[Row], label: str, benchmark: str, model: str) -> float | None:
    """Mean All over every stream of a benchmark, from whole streams if there are such rows."""
    mine = [
        r
        for r in rows
        if (r["label"], r["benchmark"], r["model"]) == (label, benchmark, model)
        and not r["options"]
    ]
    for limit in sorted({r["limit"] for r in mine}, key=lambda n: (n is not None, -(n or 0))):
        here = [r for r in mine if r["limit"] == limit]
        if len({r["stream"] for r in here}) >= here[0]["streams"]:
            return fmean(r["metrics"]["all"] for r in here)
    return None


@dataclass(frozen=True)
class Curve:
    """All by decile: of one stream, a mean over seeds, or of a method, a mean over streams too."""

    name: str
    deciles: list[float]
    is_mean: bool = False

    @property
    def gain(self) -> float:
        """Points by which the second half is above the first."""
        half = len(self.deciles) // 2
        return fmean(self.deciles[half:]) - fmean(self.deciles[:half])


def decile_curves(
    rows: Sequence[Row], benchmark: str, label: str, others: Sequence[str] = ()
) -> list[Curve]:
    """One curve a stream of ``label``, in the order of the rows; the mean of every other method."""

    def of(method: str) -> dict[str, list[float]]:
        found: dict[str, list[list[float]]] = {}
        for row in rows:
            if row["benchmark"] == benchmark and row["label"] == method:
                found.setdefault(row["stream"], []).append(row["deciles"])
        return {stream: _means(parts) for stream, parts in found.items()}

    curves = [Curve(stream, deciles) for stream, deciles in of(label).items()]
    for other in others:
        streams = of(other)
        if streams:
            curves.append(Curve(f"{other}, mean", _means(list(streams.values())), True))
    return curves


def _means(parts: Sequence[Sequence[float]]) -> list[float]:
    return [fmean(values) for values in zip(*parts)]
