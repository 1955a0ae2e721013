"""The paper's figures from result rows, the published figures as open marks beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ttgcd.bench.experiment import Experiment, published_figures
from ttgcd.bench.results import Row
from ttgcd.bench.table import Block, Cell, Table, build_tables
from ttgcd.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER: dict[str, Any] = {"markerfacecolor": "none", "linestyle": "none"}
PAPER_CURVE = {"markerfacecolor": "none", "alpha": 0.55, "linewidth": 1.0}


def draw(experiment: Experiment, rows: Sequence[Row], path: Path) -> Path:
    """Draw the figure of an experiment to ``path`` (.png, .pdf or .svg)."""
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
    panels = _panels(experiment, rows, table)
    if not panels:
        raise InputError(f"nothing to draw for {experiment.name!r}: no results, nothing published")
    width = 5.2 if len(panels) > 1 else 6.4
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(width * len(panels), 5.2), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes[0], panels):
        kinds[experiment.figure](axis, experiment, panel)
    # About 13 letters of this size fit an inch: a warning must not run over the edge.
    columns = int(13 * width * len(panels))
    said = "\n".join(fill(text, columns) for text in [experiment.title, *table.warnings])
    figure.suptitle(said, fontsize=9)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot write the figure ({error})") from error
    finally:
        pyplot.close(figure)
    return path


def _panels(experiment: Experiment, rows: Sequence[Row], table: Table) -> list[Any]:
    if experiment.figure == "time":
        return _time_panels(experiment, rows, table)
    if experiment.columns == "stream":
        return [_average_block(table)] if any(block.lines for block in table.blocks) else []
    blocks = [block for block in table.blocks if block.lines and "best arm" not in block.title]
    # Benchmarks without a row of ours are drawn only when nothing was measured at all.
    measured = [b for b in blocks if any(_has(c.mean) for line in b.lines for c in line.cells)]
    return measured or blocks


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
    told = [cell.paper for cell in cells[:-1] if _has(cell.paper)]
    if not _has(average.paper) and told:  # the paper prints the mean of All only
        average.paper = sum(told) / len(told)
    return average


def _has(value: float) -> bool:
    return not math.isnan(value)


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


def _tradeoff(axis: Axes, experiment: Experiment, block: Block) -> None:
    """Known against Novel: up and to the right is good on both halves of the label space."""
    known, novel = block.columns.index("Known"), block.columns.index("Novel")
    colours = _colours([line.label for line in block.lines])
    for line in block.lines:
        k, n = line.cells[known], line.cells[novel]
        colour = colours[line.label]
        marker = "*" if line.label.startswith("PACT") else "o"
        size = 14 if marker == "*" else 8
        if _has(k.mean) and _has(n.mean):
            axis.plot(k.mean, n.mean, marker, color=colour, markersize=size, label=line.label)
        if _has(k.paper) and _has(n.paper):
            axis.plot(k.paper, n.paper, marker, color=colour, markersize=size, **PAPER)
            if not _has(k.mean):
                axis.plot([], [], marker, color=colour, label=line.label, **PAPER)
    _finish(axis, f"{block.title} (open: published)", "Known (%)", "Novel (%)")


def _bars(axis: Axes, experiment: Experiment, block: Block) -> None:
    """All of every row, ours filled and the published one outlined."""
    place = block.columns.index("All")
    lines = block.lines
    for y, line in enumerate(lines):
        cell = line.cells[place]
        if _has(cell.mean):
            error = cell.std if _has(cell.std) else None
            axis.barh(y - 0.2, cell.mean, 0.4, xerr=error, color="tab:blue")
        if _has(cell.paper):
            axis.barh(y + 0.2, cell.paper, 0.4, color="none", edgecolor="tab:gray")
    axis.set_yticks(range(len(lines)), [line.label for line in lines], fontsize=7)
    axis.invert_yaxis()
    axis.barh([0], [0], color="tab:blue", label="ours")
    axis.barh([0], [0], color="none", edgecolor="tab:gray", label="published")
    _finish(axis, block.title, "All (%)", "")


def _lines(axis: Axes, experiment: Experiment, block: Block) -> None:
    """Accuracy against a varied number, one curve per series and metric."""
    styles = {"All": "o-", "Known": "^--", "Novel": "s:"}
    variants = {v.label: v for v in experiment.variants if v.x is not None}
    series = list(dict.fromkeys(v.series for v in variants.values()))
    colours = _colours(series)
    for name in series:
        lines = [
            line
            for line in block.lines
            if line.label in variants and variants[line.label].series == name
        ]
        for place, column in enumerate(block.columns):
            ours = [(variants[x.label].x, x.cells[place].mean) for x in lines]
            told = [(variants[x.label].x, x.cells[place].paper) for x in lines]
            _curve(axis, ours, styles[column], colours[name], f"{name} {column}", {})
            _curve(
                axis,
                told,
                styles[column],
                colours[name],
                f"{name} {column}, published",
                PAPER_CURVE,
            )
    for line in block.lines:
        if line.label not in variants:  # a reference without a place on the axis
            for value, style, who in (
                (line.cells[0].mean, "-", ""),
                (line.cells[0].paper, ":", ", published"),
            ):
                if _has(value):
                    label = f"{line.label} {block.columns[0]}{who}"
                    axis.axhline(value, color="black", linestyle=style, linewidth=0.8, label=label)
    axis.set_xscale(experiment.x_scale)
    ticks = sorted({v.x for v in variants.values() if v.x is not None})
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=7)
    axis.minorticks_off()
    _finish(axis, block.title, experiment.x_label, "accuracy (%)")


def _curve(
    axis: Axes, points: list[tuple[Any, float]], style: str, colour: Any, label: str, more: Any
) -> None:
    points = sorted(point for point in points if _has(point[1]))
    if points:
        xs, ys = zip(*points)
        axis.plot(xs, ys, style, color=colour, label=label, markersize=5, **more)


def _time_panels(experiment: Experiment, rows: Sequence[Row], table: Table) -> list[Any]:
    """(title, published name, points) per benchmark; a point is (label, ms, All, is ours)."""
    panels = []
    accuracy = {
        "domainnet": (published_figures("domainnet")["values"], "average"),
        "cifar100-c": (published_figures("main")["values"], "cifar100-c"),
    }
    for block in table.blocks:
        points = []
        for line in block.lines:
            cell = line.cells[block.columns.index("ms/batch")]
            mine = [r for r in rows if r["label"] == line.label and r["benchmark"] == block.title]
            if _has(cell.mean) and mine:
                mean = sum(r["metrics"]["all"] for r in mine) / len(mine)
                points.append((line.label, cell.mean, mean, True))
            values, column = accuracy.get(block.title, ({}, ""))
            told = values.get(line.label, {}).get(column, {}).get("all")
            if _has(cell.paper) and told is not None:
                figure = told[0] if isinstance(told, list) else told
                points.append((line.label, cell.paper, figure, False))
        if points:
            panels.append((block.title, points))
    measured = [panel for panel in panels if any(point[3] for point in panel[1])]
    return measured or panels


def _time(axis: Axes, experiment: Experiment, panel: tuple[str, list[Any]]) -> None:
    """Time per batch against accuracy: up and to the left is good."""
    title, points = panel
    colours = _colours(list(dict.fromkeys(point[0] for point in points)))
    for label, ms, accuracy, ours in points:
        marker = "*" if label.startswith("PACT") else "o"
        more: dict[str, Any] = {} if ours else PAPER
        size = 14 if marker == "*" else 8
        axis.plot(ms, accuracy, marker, color=colours[label], markersize=size, **more)
    for label, colour in colours.items():
        marker = "*" if label.startswith("PACT") else "o"
        axis.plot([], [], marker, color=colour, linestyle="none", label=label)
    axis.set_xscale("log")
    _finish(axis, f"{title} (open: published, H100)", "ms per batch of 128", "All (%)")


def _deciles(axis: Axes, experiment: Experiment, block: Block) -> None:
    """All in successive tenths of the stream."""
    for line in block.lines:
        values = [cell.mean for cell in line.cells]
        axis.plot(range(1, len(values) + 1), values, "o-", label=line.label)
    axis.set_xticks(range(1, 11))
    _finish(axis, block.title, "decile of the stream", "All (%)")
