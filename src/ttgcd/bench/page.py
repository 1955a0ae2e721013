"""One page of all results on disk: commands, tables, figures, and what was found by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ttgcd.bench.claims import examine, markdown
from ttgcd.bench.experiment import Experiment, experiment_names, load_experiment
from ttgcd.bench.figures import draw
from ttgcd.bench.options import SELECTED, Options, base_label, settings_of
from ttgcd.bench.paper_table import Table, build_tables, comparable
from ttgcd.bench.render import render
from ttgcd.bench.results import Row, accuracy_rows, read_results
from ttgcd.bench.selection import read_selection
from ttgcd.bench.settle import judge
from ttgcd.errors import InputError

# All methods; the ablations come after.
FIRST = ("main", "domainnet", "cub", "iconshift", "fashion")
CLOSING = """Judged from the rows above by the rules in `bench/claims.py`: on the streams that all
rows of a comparison have, from the table with the most methods. "First" needs rows of all seven
baselines. What does not hold here may hold with the paper's model.
"""
PUBLISHED = "The paper's figures on benchmarks that were not measured here"
INTRODUCTION = "introduction"  # the section of the findings that opens the page


def write_page(results: Path, output: Path, model: str | None = None) -> Path:
    """Write ``output`` (Markdown) and its figures beside it, in ``img/``.

    ``findings.md`` in the results folder, if there is one, holds what a person has to say: a
    section ``## NAME`` for each experiment, and ``## introduction``.
    """
    measured = {}
    for name in sorted(experiment_names(), key=_place):
        rows = read_results(results / f"{name}.jsonl").rows
        rows = [row for row in rows if model in (None, row["model"])]
        if rows:
            measured[name] = rows
    if not measured:
        raise InputError(f"{results}: no results; `ttgcd bench run` writes them")
    findings = read_findings(results / "findings.md")
    unknown = set(findings) - set(experiment_names()) - {INTRODUCTION}
    if unknown:
        raise InputError(f"{results / 'findings.md'}: {min(unknown)!r} is not an experiment")
    every = [row for rows in measured.values() for row in rows]
    parts = ["# Results measured here\n", findings.get(INTRODUCTION, ""), _machines(results, every)]
    for name, rows in measured.items():
        finding = findings.get(name, "")
        parts.append(_section(load_experiment(name), rows, finding, output, results))
    judged = [found for name, rows in measured.items() for found in examine(name, rows)]
    if judged:
        parts += ["\n## The paper's claims\n", CLOSING, markdown(judged)]
    try:
        output.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output}: cannot write the page ({error})") from error
    return output


def _place(name: str) -> tuple[int, str]:
    return (FIRST.index(name), "") if name in FIRST else (len(FIRST), name)


def read_findings(path: Path) -> dict[str, str]:
    """The sections of a Markdown file by their ``## `` headings."""
    if not path.exists():
        return {}
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            current = sections.setdefault(line[3:].strip(), [])
        else:
            current.append(line)
    return {name: "\n".join(lines).strip() + "\n" for name, lines in sections.items()}


def _section(
    experiment: Experiment, rows: list[Row], finding: str, output: Path, results: Path
) -> str:
    parts = [f"\n## `{experiment.name}`: {experiment.title}\n", f"*{experiment.question}*\n"]
    selected = results / SELECTED
    arms = read_selection(selected).options() if selected.exists() else {}
    parts += [finding, "```sh", *commands(experiment, rows, arms), "```\n"]
    for number, part in enumerate(comparable(experiment, rows)):
        if experiment.figure:
            # The page names its figures itself: two sets of rows must not share a file.
            file = output.parent / "img" / f"{experiment.name}{number or ''}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            draw(experiment, part, file, accuracy_rows(results))
            parts.append(f"![{experiment.title}](img/{file.name})\n")
        parts += [_markdown(table) for table in build_tables(experiment, part)]
        if experiment.name == "settle":
            parts.append(_verdict(experiment, part))
        if experiment.columns == "benchmark" and _has_main_rows(experiment):
            by_stream = replace(experiment, columns="stream", metrics=("all",), published=None)
            streams = "\n".join(_markdown(table) for table in build_tables(by_stream, part))
            parts.append(_folded("All by stream", streams))
    return "\n".join(parts)


def _verdict(experiment: Experiment, rows: Sequence[Row]) -> str:
    try:
        text = judge(experiment, rows).text()
    except InputError as error:  # not every run that it needs is there
        text = str(error)
    return f"What `ttgcd bench settle` prints of these rows:\n\n```text\n{text}\n```\n"


def _has_main_rows(experiment: Experiment) -> bool:
    rows = load_experiment("main").variants
    return experiment.variants[: len(rows)] == rows


def _markdown(table: Table) -> str:
    """The table without its heading; benchmarks that only the paper has are folded away."""
    told = [block for block in table.blocks if block.lines and not block.measured]
    table.blocks = [block for block in table.blocks if block.measured]
    text = render(table, "markdown").partition(table.question)[2].lstrip("\n")
    if told:
        folded = render(Table(table.title, table.question, blocks=told), "markdown")
        folded = folded.partition(table.question)[2].strip("\n")
        text += "\n" + _folded(PUBLISHED, folded)
    return text


def _folded(title: str, content: str) -> str:
    """Shown on a click; ``markdown`` is what the documentation's builder needs to read inside."""
    return f'<details markdown="1"><summary>{title}</summary>\n\n{content.strip()}\n\n</details>\n'


class Command(NamedTuple):
    """What one `bench run` measured, apart from the methods."""

    benchmark: str
    model: str
    limit: int | None
    streams: tuple[str, ...]  # empty: all
    seeds: tuple[int, ...]
    settings: tuple[str, ...]  # --set, --selected


def commands(
    experiment: Experiment, rows: Sequence[Row], selected: Mapping[str, Options]
) -> list[str]:
    """The commands that measure these rows; ``selected`` are the arms by method."""
    order = [variant.label for variant in experiment.variants]
    labels = [label for label in order if any(row["label"] == label for row in rows)]
    labels += sorted({row["label"] for row in rows} - set(order))
    found: dict[Command, list[str]] = {}
    for label in labels:
        mine = [row for row in rows if row["label"] == label]
        for command in _commands_of(experiment, mine, selected):
            found.setdefault(command, []).append(base_label(label))
    lines = []
    for command, chosen in found.items():
        line = f"ttgcd bench run {experiment.name} --data DATA --benchmarks {command.benchmark}"
        line += f" --model {command.model} --seeds {','.join(map(str, command.seeds))}"
        line += f" --limit {command.limit}" if command.limit is not None else ""
        line += f" --streams {','.join(command.streams)}" if command.streams else ""
        line += f' --methods "{",".join(chosen)}"' if chosen != labels else ""
        line += "".join(f" {setting}" for setting in command.settings)
        lines.append(line)
    return lines


def _commands_of(
    experiment: Experiment, rows: Sequence[Row], selected: Mapping[str, Options]
) -> list[Command]:
    """The commands behind the rows of one method: seeds with the same streams go together."""
    seeds: dict[Command, list[int]] = {}
    for row in rows:
        here = [
            r["stream"]
            for r in rows
            if all(r[k] == row[k] for k in ("benchmark", "model", "limit", "seed", "options"))
        ]
        streams = () if len(set(here)) == row["streams"] else tuple(sorted(set(here)))
        settings = tuple(settings_of(experiment, row, selected))
        command = Command(row["benchmark"], row["model"], row["limit"], streams, (), settings)
        told = seeds.setdefault(command, [])
        if row["seed"] not in told:
            told.append(row["seed"])
    return [command._replace(seeds=tuple(sorted(told))) for command, told in seeds.items()]


def _machines(results: Path, rows: Sequence[Row]) -> str:
    """Where the rows were measured."""
    lines = []
    for name in dict.fromkeys(row.get("manifest") for row in rows):
        path = results / "manifests" / f"{name}.json"
        if not path.exists():
            continue
        told = json.loads(path.read_text(encoding="utf-8"))
        count = sum(row.get("manifest") == name for row in rows)
        lines.append(
            f"- {count} rows (`{name}`): {told['platform']}, {told['cores']} cores, "
            f"{told['threads']} thread{'s' if told['threads'] > 1 else ''} a process, Python "
            f"{told['python']}, torch {told['versions']['torch']}"
        )
    return "\n".join(["Where the rows were measured:\n", *lines, ""]) if lines else ""
