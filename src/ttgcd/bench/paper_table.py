"""From result rows to a table: means and deviations, the published figures, the differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from ttgcd.bench.columns import HALVES, NAN, Column, in_order, layout
from ttgcd.bench.experiment import OWN, Experiment, Variant, published_figures
from ttgcd.bench.options import base_label, describe
from ttgcd.bench.results import Row
from ttgcd.errors import InputError

# Where less is better; everywhere else the best is the largest.
LOWER_IS_BETTER = (
    *("ms_per_batch", "forward_ms", "other_ms", "forwards"),
    *("stream_gb", "memory_ratio", "warmup_s", "warmup_gb", "total_s"),
)


@dataclass
class Cell:
    """One figure: ours (mean and deviation over seeds) and the published one."""

    mean: float = NAN
    std: float = NAN
    seeds: int = 0
    streams: int = 0
    partial: bool = False  # not all streams of the column are there
    best: bool = False
    paper: float = NAN
    paper_std: float = NAN
    paper_best: bool = False

    @property
    def difference(self) -> float:
        return self.mean - self.paper


@dataclass
class Line:
    """A method variant across the columns."""

    label: str
    group: str
    cells: list[Cell]
    answers: str = ""
    passes: int | None = None


@dataclass
class Block:
    """A part of the table under a heading of its own."""

    title: str
    columns: list[str]
    lines: list[Line]
    lower_is_better: list[bool]

    @property
    def measured(self) -> bool:
        """Whether a figure of ours is in it; the paper's alone otherwise."""
        return any(map(_measured, self.lines))


@dataclass
class Table:
    """All of one experiment under one model and one limit. ``warnings`` are printed loudly."""

    title: str
    question: str
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def build_tables(
    experiment: Experiment, rows: Sequence[Row], models: Sequence[str] | None = None
) -> list[Table]:
    """One table for each set of rows that may be compared: same models or limit.

    Models of the experiment itself share a table, any other model gets a table of its own.
    """
    if models is not None:
        rows = [row for row in rows if row["model"] in models]
        if not rows:
            raise InputError(f"no row of {experiment.name} was measured with {', '.join(models)}")
    kinds = comparable(experiment, rows)
    if not kinds:
        return [_table(experiment, [], None)]
    return [_table(experiment, kind, kind[0]["limit"]) for kind in kinds]


def comparable(experiment: Experiment, rows: Sequence[Row]) -> list[list[Row]]:
    """The rows, apart by what must not stand in one table."""
    own = set(experiment.models)
    kinds: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        model = "" if row["model"] in own else row["model"]
        options = describe(row["options"])
        expected = experiment.novel_of(base_label(row["label"]))
        options += "" if row["novel"] == expected else row["novel"]
        options = f"{row['benchmark']}: {options}" if options else ""
        kinds.setdefault((model, row["limit"] or 0, options), []).append(row)
    return [kinds[kind] for kind in sorted(kinds)]


def _table(experiment: Experiment, rows: list[Row], limit: int | None) -> Table:
    published = published_figures(experiment.published)
    table = Table(experiment.title, experiment.question)
    table.warnings = _warnings(experiment, rows, limit)
    table.notes = _notes(published, rows)
    variants = _variants(experiment, rows)
    for title, columns in layout(experiment, rows, published):
        lines = [_line(variant, columns, rows, published) for variant in variants]
        filled = [line for line, v in zip(lines, variants) if _filled(line, v)]
        filled = [line for line in filled if not _replaced(line, filled)]
        lower = [column.metric in LOWER_IS_BETTER for column in columns]
        block = Block(title, [column.title for column in columns], filled, lower)
        _mark_best(block)
        table.blocks.append(block)
        if experiment.columns == "decile" and columns:
            parts = [_by_stream(title, columns, variant, rows) for variant in variants]
            table.blocks += [part for part in parts if part.lines]
        if experiment.best_of_group:
            table.blocks.append(_best_arms(title, lines, published))
    if any(cell.partial for block in table.blocks for line in block.lines for cell in line.cells):
        table.notes.append("† mean over fewer streams than other rows of the column")
    return table


# -- cells -----------------------------------------------------------------------------------


def _variants(experiment: Experiment, rows: Sequence[Row]) -> list[Variant]:
    """The experiment's rows, those with changed options, and the user's own methods."""
    labels = {variant.label for variant in experiment.variants}
    own = {row["label"]: row["method"] for row in rows if row["label"] not in labels}
    found: list[Variant] = []
    for variant in experiment.variants:
        # Rows with changed options stand below the row they came from, beside the same figures.
        changed = [label for label in own if base_label(label) == variant.label]
        found += [variant, *(replace(variant, label=label, x=None) for label in changed)]
        for label in changed:
            del own[label]
    return found + [Variant(label, method, group=OWN) for label, method in own.items()]


def _line(
    variant: Variant, columns: list[Column], rows: Sequence[Row], published: dict[str, Any]
) -> Line:
    mine = [row for row in rows if row["label"] == variant.label]
    told = published["values"].get(variant.published, {})
    cells = []
    for column in columns:
        in_column = [row for row in rows if column.takes(row)]
        cell = _cell(column, [row for row in mine if column.takes(row)], in_column)
        figure = told.get(column.published, {}).get(column.metric)
        if isinstance(figure, list):
            cell.paper, cell.paper_std = figure
        elif figure is not None:
            cell.paper = float(figure)
        cells.append(cell)
    answers = mine[0]["answers"] if mine else ""
    return Line(variant.label, variant.group, cells, answers, mine[0]["passes"] if mine else None)


def _cell(column: Column, mine: Sequence[Row], in_column: Sequence[Row]) -> Cell:
    """Streams have equal weight in a seed's mean; the deviation is over seeds."""
    if not mine:
        return Cell()
    expected = {(row["benchmark"], row["stream"]) for row in in_column}
    by_seed: dict[int, list[Row]] = {}
    for row in mine:
        by_seed.setdefault(row["seed"], []).append(row)
    whole = {
        seed: part
        for seed, part in by_seed.items()
        if {(row["benchmark"], row["stream"]) for row in part} == expected
    }
    used = whole or by_seed
    means = []
    for part in used.values():
        values = [value for value in map(column.read, part) if not math.isnan(value)]
        if values:
            means.append(fmean(values))
    return Cell(
        mean=fmean(means) if means else NAN,
        std=stdev(means) if len(means) > 1 else NAN,
        seeds=len(means),
        streams=max(len(part) for part in used.values()),
        partial=not whole,
    )


def _filled(line: Line, variant: Variant) -> bool:
    """Whether a line has something to show; a figure lent to a row of ours is not enough."""
    own = variant.in_paper and base_label(variant.label) == variant.label
    return _measured(line) or (own and any(not math.isnan(cell.paper) for cell in line.cells))


def _replaced(line: Line, lines: Sequence[Line]) -> bool:
    """Whether a row was not measured as it is but with other options, which say the paper's too."""
    twins = [x for x in lines if base_label(x.label) == line.label and x is not line]
    return not _measured(line) and any(map(_measured, twins))


def _measured(line: Line) -> bool:
    return any(not math.isnan(cell.mean) for cell in line.cells)


def _mark_best(block: Block) -> None:
    for place, lower in enumerate(block.lower_is_better):
        cells = [line.cells[place] for line in block.lines]
        pick = min if lower else max
        for value, mark in (("mean", "best"), ("paper", "paper_best")):
            known = [c for c in cells if not math.isnan(getattr(c, value)) and not c.partial]
            if len(known) > 1:
                top = pick(round(getattr(c, value), 2) for c in known)
                for cell in known:
                    setattr(cell, mark, round(getattr(cell, value), 2) == top)


def _by_stream(title: str, columns: list[Column], variant: Variant, rows: Sequence[Row]) -> Block:
    """One row's deciles stream by stream, and how far the second half is above the first."""
    halves = Column("2nd - 1st half", HALVES, columns[0].benchmark)
    wanted = [*columns, halves]
    mine = [r for r in rows if r["label"] == variant.label and halves.takes(r)]
    lines = []
    for stream in in_order(r["stream"] for r in mine):
        here = [r for r in mine if r["stream"] == stream]
        cells = [_cell(column, here, here) for column in wanted]
        lines.append(Line(stream, "", cells, here[0]["answers"], here[0]["passes"]))
    names = [column.title for column in wanted]
    return Block(f"{title}, {variant.label} by stream", names, lines, [False] * len(names))


def _best_arms(title: str, arms_of_all: Sequence[Line], published: dict[str, Any]) -> Block:
    """The best arm of every group beside the published best."""
    lines = []
    for group in in_order(line.group for line in arms_of_all):
        arms = [line for line in arms_of_all if line.group == group]
        best = max(arms, key=lambda line: -math.inf if math.isnan(m := line.cells[0].mean) else m)
        ours = best.cells[0]
        told = published["values"].get(group, {}).get(title, {}).get("all", NAN)
        name = group if math.isnan(ours.mean) else f"{group}: {best.label.removeprefix(group)[1:]}"
        cell = Cell(ours.mean, ours.std, ours.seeds, ours.streams, ours.partial, paper=told)
        lines.append(Line(name, "", [cell], best.answers, best.passes))
    return Block(f"{title}, best arm of each method", ["All"], lines, [False])


# -- what must be said ------------------------------------------------------------------------


def _warnings(experiment: Experiment, rows: Sequence[Row], limit: int | None) -> list[str]:
    if not rows:
        return [f"NO RESULTS of {experiment.name}: only published figures are shown"]
    said = []
    foreign = in_order(row["model"] for row in rows if row["model"] not in experiment.models)
    for model in foreign:
        prints = in_order(row["fingerprint"][:12] for row in rows if row["model"] == model)
        said.append(
            f"NOT THE PAPER'S MODEL: ours was measured with {model} (weights {', '.join(prints)}), "
            f"the published figures with {', '.join(experiment.models)}"
        )
    for model in in_order(row["model"] for row in rows):
        if len({row["fingerprint"] for row in rows if row["model"] == model}) > 1:
            said.append(f"MIXED WEIGHTS: rows under the name {model} come from different weights")
    if limit is not None:
        said.append(f"ONLY {limit:,} IMAGES PER STREAM (--limit): not comparable to full streams")
    for name in in_order(row["benchmark"] for row in rows):
        here = [row for row in rows if row["benchmark"] == name]
        if here[0]["options"]:
            said.append(f"{name} WITH {describe(here[0]['options'])}: not the paper's setting")
        ran = len({row["stream"] for row in here})
        there = experiment.streams_asked(name) or here[0]["streams"]
        if ran < there and experiment.columns not in ("stream", "decile"):
            said.append(f"{name}: {ran} of {there} streams")
    return said


def _notes(published: dict[str, Any], rows: Sequence[Row]) -> list[str]:
    notes = [f"paper: {published['where']}. {published['note']}"] if "where" in published else []
    notes += in_order(
        f"{row['benchmark']}: the buffer W is half the stream where that is less"
        for row in rows
        if "warmup" in row and row["warmup"] != row["config"].get("warmup")
    )
    notes += in_order(f"{row['benchmark']}: {note}" for row in rows for note in row["data_notes"])
    rejected = sum(row["rejected"] for row in rows)
    if rejected:
        notes.append(f"{rejected} unreadable images were left out over all rows")
    for name in in_order(row["benchmark"] for row in rows if row["novel"] == "counted"):
        found = {
            row["stream"]: row["novel_found"]
            for row in rows
            if row["benchmark"] == name and row["novel"] == "counted"
        }
        notes.append(
            f"{name}: L counted by the method = {fmean(found.values()):.1f} (mean over streams)"
        )
    estimated = [row for row in rows if row["novel"] not in ("given", "counted")]
    for name in in_order(row["benchmark"] for row in estimated):
        here = {row["stream"]: row for row in estimated if row["benchmark"] == name}
        mean = fmean(row["novel_given"] for row in here.values())
        told = published.get("estimated", {}).get(name)
        true = next(iter(here.values()))["novel_classes"]
        beside = f", published {told}" if told is not None else ""
        notes.append(f"{name}: estimated L = {mean:.1f} (mean over streams), true {true}{beside}")
    return notes
