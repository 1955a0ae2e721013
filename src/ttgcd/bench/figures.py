"""The paper's figures from result rows, the published figures as open marks beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import cycle, zip_longest
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ttgcd.bench.experiment import Experiment
from ttgcd.bench.options import base_label
from ttgcd.bench.panels import (
    OURS,
    Curve,
    Panel,
    decile_curves,
    has,
    measured_blocks,
    shown_blocks,
    shown_labels,
    time_panels,
    tradeoff_panel,
    varied_curves,
)
from ttgcd.bench.paper_table import Block, Cell, Line, Table, build_tables
from ttgcd.bench.results import Row
from ttgcd.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 2  # panels side by side: more are too small to read on a page
LEAST_SPAN = 10.0  # points of accuracy that an axis of curves covers
PAPER: dict[str, Any] = {"markerfacecolor": "none", "linestyle": "none"}
PAPER_CURVE = {"markerfacecolor": "none", "alpha": 0.55, "linewidth": 1.0}


def draw(
    experiment: Experiment, rows: Sequence[Row], path: Path, accuracy: Sequence[Row] = ()
) -> Path:
    """Draw the figure of an experiment to ``path`` (.png, .pdf or .svg).

    ``accuracy`` are rows of the experiments that hold the mean All, for the figure of time.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'ttgcd[figures]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    kinds: dict[str | None, Callable[..., None]] = {
        "tradeoff": _tradeoff,
        "bars": _bars,
        "lines": _lines,
        "time": _time,
        "deciles": _deciles,
    }
    if experiment.figure not in kinds:
        raise InputError(f"experiment {experiment.name!r} has no figure; print its table instead")
    table = build_tables(experiment, rows)[0]
    panels = _panels(experiment, rows, table, accuracy)
    if not panels:
        raise InputError(f"nothing to draw for {experiment.name!r}: no results, nothing published")
    width = 5.2 if len(panels) > 1 else 6.4
    across = min(len(panels), ACROSS)
    down = math.ceil(len(panels) / across)
    figure, axes = pyplot.subplots(
        down, across, figsize=(width * across, 5.2 * down), squeeze=False, layout="constrained"
    )
    for axis, panel in zip_longest(axes.flat, panels):
        if panel is None:
            axis.set_axis_off()
        else:
            kinds[experiment.figure](axis, experiment, panel)
    # About 13 letters of this size fit an inch: a warning must not run over the edge.
    columns = int(13 * width * across)
    said = "\n".join(fill(text, columns) for text in [experiment.title, *table.warnings])
    figure.suptitle(said, fontsize=9)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot write the figure ({error})") from error
    finally:
        pyplot.close(figure)
    return path


def _panels(
    experiment: Experiment, rows: Sequence[Row], table: Table, accuracy: Sequence[Row]
) -> list[Any]:
    """What stands side by side, as the figure's drawing function takes it."""
    if experiment.figure == "time":
        return time_panels(experiment, table, rows, accuracy)
    if experiment.figure == "deciles":
        benchmarks = dict.fromkeys(row["benchmark"] for row in rows)
        first, *others = (variant.label for variant in experiment.variants)
        curves = {name: decile_curves(rows, name, first, others) for name in benchmarks}
        return [entry for entry in curves.items() if entry[1]]
    if experiment.figure == "tradeoff":
        blocks = measured_blocks(table)
        if experiment.columns == "stream":
            blocks = [_average_block(table)] if any(block.lines for block in table.blocks) else []
        if experiment.columns == "benchmark":  # the paper's: one panel of means
            return [tradeoff_panel(experiment, blocks)] if blocks else []
        return [tradeoff_panel(experiment, [block]) for block in blocks]
    blocks = shown_blocks(table)
    if experiment.figure == "lines" and experiment.metrics == ("all",):
        return [blocks] if blocks else []  # one curve a benchmark fits one panel
    return [[block] for block in blocks] if experiment.figure == "lines" else blocks


def _average_block(table: Table) -> Block:
    """All, Known and Novel averaged over streams, from a table that has one block a metric."""
    first = table.blocks[0]
    benchmark = first.title.rpartition(",")[0]
    mine = [b for b in table.blocks if b.title.rpartition(",")[0] == benchmark]
    for place, line in enumerate(first.lines):
        cells = [next(x for x in b.lines if x.label == line.label).cells for b in mine]
        first.lines[place].cells = [_average_cell(entry) for entry in cells]
    columns = [block.title.rpartition(", ")[2] for block in mine]
    return Block(f"{benchmark}, mean over streams", columns, first.lines, [False] * len(columns))


def _average_cell(cells: list[Cell]) -> Cell:
    average = cells[-1]
    told = [cell.paper for cell in cells[:-1] if has(cell.paper)]
    if not has(average.paper) and told:  # the paper prints the mean of All only
        average.paper = sum(told) / len(told)
    return average


def _colours(labels: Sequence[str]) -> dict[str, Any]:
    from matplotlib import pyplot

    palette = pyplot.get_cmap("tab10" if len(labels) <= 10 else "tab20").colors
    return {label: palette[place % len(palette)] for place, label in enumerate(labels)}


def _finish(axis: Axes, title: str, x: str, y: str, legend: bool = True) -> None:
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(alpha=0.3)
    if legend and axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _tradeoff(axis: Axes, experiment: Experiment, panel: Panel) -> None:
    """Known against Novel: up and to the right is good on both halves of the label space."""
    _scatter(axis, experiment, panel)
    for measured, colour, who in ((True, "black", "measured"), (False, "tab:gray", "published")):
        best = panel.best(measured)
        if best is not None:
            style: dict[str, Any] = {"linestyle": "--", "linewidth": 0.8, "color": colour}
            axis.axvline(best[0], **style, label=f"best baseline, {who}")
            axis.axhline(best[1], **style)
    _finish(axis, panel.title + " (open: published)" * panel.published, "Known (%)", "Novel (%)")


def _scatter(axis: Axes, experiment: Experiment, panel: Panel) -> None:
    """One colour a method; PACT a star, what is not in the paper small, published open."""
    labels = [v.label for v in experiment.variants] + [base_label(p.label) for p in panel.points]
    colours = _colours(list(dict.fromkeys(labels)))  # the same in every panel
    named: set[str] = set()
    for point in panel.points:
        ours = point.label.startswith(OURS)
        size = 14 if ours and point.in_paper else 8 if point.in_paper else 5
        more: dict[str, Any] = {} if point.measured else PAPER
        label = None if point.label in named else point.label
        named.add(point.label)
        axis.plot(
            [point.x],
            [point.y],
            "*" if ours else "o",
            color=colours[base_label(point.label)],
            markersize=size,
            label=label,
            **{"linestyle": "none", **more},
        )


def _title(block: Block) -> str:
    return block.title if block.measured else f"{block.title} (published only)"


def _bars(axis: Axes, experiment: Experiment, block: Block) -> None:
    """All of every row, ours filled and the published one outlined."""
    place = block.columns.index("All")
    lines = [line for line in block.lines if has(line.cells[place].mean)]
    lines = lines or [line for line in block.lines if has(line.cells[place].paper)]
    shown = shown_labels(line.label for line in lines)
    lines = [line for line in lines if line.label in shown]
    published = any(has(line.cells[place].paper) for line in lines)
    away = 0.2 if block.measured and published else 0.0
    for y, line in enumerate(lines):
        cell = line.cells[place]
        if has(cell.mean):
            error = cell.std if has(cell.std) else None
            axis.barh(y - away, cell.mean, 0.4, xerr=error, color="tab:blue")
        if has(cell.paper):
            axis.barh(y + away, cell.paper, 0.4, color="none", edgecolor="tab:gray")
    axis.set_yticks(range(len(lines)), [line.label for line in lines], fontsize=7)
    axis.invert_yaxis()
    if block.measured:
        axis.barh([0], [0], color="tab:blue", label="ours")
    if published:
        axis.barh([0], [0], color="none", edgecolor="tab:gray", label="published")
    _finish(axis, _title(block), "All (%)", "")


def _lines(axis: Axes, experiment: Experiment, blocks: Sequence[Block]) -> None:
    """Accuracy against a varied number, one curve per benchmark, series and metric."""
    styles = {"All": "o-", "Known": "^--", "Novel": "s:"}
    curves = varied_curves(experiment, blocks)
    several = len(blocks) > 1
    names = [f"{c.block} {c.series}".strip() if several else c.series for c in curves]
    colours = _colours(list(dict.fromkeys(names)))
    for name, curve in zip(names, curves):
        label = f"{name} {curve.column}".strip() + ", published" * (not curve.measured)
        more = {} if curve.measured else PAPER_CURVE
        style = {"color": colours[name], "label": label, "markersize": 5, **more}
        axis.plot(*zip(*curve.points), styles[curve.column], **style)
    placed = {v.label: v.x for v in experiment.variants if v.x is not None}
    for block in blocks:
        _references(axis, block, [line for line in block.lines if line.label not in placed])
    axis.set_xscale(experiment.x_scale)
    ticks = sorted(set(placed.values()))
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=7)
    axis.minorticks_off()
    axis.set_xlim(*_with_margin(ticks[0], ticks[-1], experiment.x_scale))
    title = ", ".join(map(_title, blocks))
    _finish(axis, title, experiment.x_label, "accuracy (%)")
    _at_least(axis, LEAST_SPAN)


def _with_margin(low: float, high: float, scale: str) -> tuple[float, float]:
    if scale == "log":
        away = (high / low) ** 0.05
        return low / away, high * away
    away = 0.05 * (high - low)
    return low - away, high + away


def _at_least(axis: Axes, span: float) -> None:
    """Widen the axis: half a point must not look like a cliff."""
    low, high = axis.get_ylim()
    if high - low < span:
        middle = (low + high) / 2
        axis.set_ylim(middle - span / 2, middle + span / 2)


def _references(axis: Axes, block: Block, lines: Sequence[Line]) -> None:
    """All of rows without a place on the axis, as horizontal lines; published ones dotted."""
    published = set()
    for line, colour in zip(lines, cycle(("black", "tab:gray", "tab:brown"))):
        cell = line.cells[0]
        for value, style, who in ((cell.mean, "--", ""), (cell.paper, ":", ", published")):
            if has(value) and not (who and value in published):
                published |= {value} if who else set()
                label = f"{line.label} {block.columns[0]}{who}"
                axis.axhline(value, color=colour, linestyle=style, linewidth=0.8, label=label)


def _time(axis: Axes, experiment: Experiment, panel: Panel) -> None:
    """Time per batch against accuracy: up and to the left is good."""
    from matplotlib.ticker import LogLocator

    _scatter(axis, experiment, panel)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.minorticks_off()
    title = panel.title + " (open: published, H100)" * panel.published
    _finish(axis, title, "ms per batch of 128", "All (%)")


def _deciles(axis: Axes, experiment: Experiment, panel: tuple[str, list[Curve]]) -> None:
    """All in successive tenths of every stream."""
    benchmark, curves = panel
    colours = _colours([curve.name for curve in curves if not curve.is_mean])
    for curve in curves:
        places = range(1, len(curve.deciles) + 1)
        style = "k--" if curve.is_mean else "o-"
        colour = {} if curve.is_mean else {"color": colours[curve.name]}
        label = f"{curve.name} ({curve.gain:+.1f})"
        axis.plot(places, curve.deciles, style, label=label, markersize=3, **colour)
    axis.set_xticks(range(1, 11))
    title = f"{benchmark}, a curve a stream (second half above the first)"
    _finish(axis, title, "decile of the stream", "All (%)")
