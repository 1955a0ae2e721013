"""The tables of benchmarks/packs.py, and the lines that a version is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.pack_arms import ARMS

Row = dict[str, Any]
TaskId = tuple[str, int, int]  # pack, known, novel
NEIGHBOURS = ("kmeans", "umap-hdbscan-5", "umap-hdbscan-10", "evoc")


class Rows:
    """Measured rows by task, arm and seed."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.by: dict[tuple[TaskId, str], dict[int, Row]] = {}
        for row in rows:
            task = row["pack"], row["known"], row["novel"]
            self.by.setdefault((task, row["arm"]), {})[row["seed"]] = row

    def tasks(self, names: bool) -> list[TaskId]:
        """With known names, or without any."""
        return list(dict.fromkeys(task for task, _ in self.by if (task[1] > 0) == names))

    def arms(self, tasks: Sequence[TaskId]) -> list[str]:
        return [arm for arm in ARMS if any((task, arm) in self.by for task in tasks)]

    def of(self, task: TaskId, arm: str) -> list[Row]:
        return list(self.by.get((task, arm), {}).values())

    def all(self, task: TaskId, arm: str) -> float | None:
        """Mean All over the seeds."""
        rows = self.of(task, arm)
        return float(np.mean([row["accuracy"][0] for row in rows])) if rows else None

    def every(self, tasks: Sequence[TaskId], arm: str) -> list[float]:
        """``all`` of the tasks that have the arm."""
        return [value for task in tasks if (value := self.all(task, arm)) is not None]

    def usual(self, task: TaskId, arm: str) -> str:
        """The arm as a user has it: with the vocabulary, where there is one."""
        with_words = f"{arm}+words"
        return with_words if (task, with_words) in self.by else arm

    def changes(self, tasks: Sequence[TaskId], one: str, other: str) -> list[float]:
        """From ``other`` to ``one``, on the tasks that have both."""
        both = ((self.all(t, one), self.all(t, other)) for t in tasks)
        return [a - b for a, b in both if a is not None and b is not None]


def tables(measured: Iterable[Row]) -> Iterator[str]:
    """Mean All by task and arm: with some names known, and with none."""
    rows = Rows(measured)
    for names, title in ((True, "Some names known"), (False, "No names")):
        tasks = rows.tasks(names)
        if tasks:
            yield from ("", f"#### {title}: mean All", "")
            yield from _accuracy(rows, tasks, names)
            yield from ("", _seconds(rows, tasks))


def _accuracy(rows: Rows, tasks: Sequence[TaskId], names: bool) -> Iterator[str]:
    arms = rows.arms(tasks)
    yield "| | samples | " + " | ".join(ARMS[arm].title for arm in arms) + " | found |"
    yield "|---|" + "---:|" * (len(arms) + 2)
    for task in tasks:
        pack, known, novel = task
        some = next(r for arm in arms for r in rows.of(task, arm))
        cells = [_cell(rows.all(task, arm)) for arm in arms]
        counted = rows.of(task, rows.usual(task, "counted"))
        found = ", ".join(f"{r['found']} ({r['range'][0]}-{r['range'][1]})" for r in counted)
        size = f"{known} + {novel}" if names else str(novel)
        yield f"| {pack}: {size} | {some['samples']} | " + " | ".join([*cells, found]) + " |"
    whole = [task for task in tasks if all(rows.all(task, arm) is not None for arm in arms)]
    yield _means(rows, arms, tasks)
    if whole and whole != list(tasks):
        yield _means(rows, arms, whole)


def _means(rows: Rows, arms: Sequence[str], tasks: Sequence[TaskId]) -> str:
    """Of the arms that all of these tasks have."""
    values = [rows.every(tasks, arm) for arm in arms]
    cells = [f"{np.mean(v):.1f}" if len(v) == len(tasks) else "" for v in values]
    return f"| **mean of {len(tasks)}** | | " + " | ".join(cells) + " | |"


def _seconds(rows: Rows, tasks: Sequence[TaskId]) -> str:
    said = []
    for arm in rows.arms(tasks):
        every = [r["cpu_seconds"] for task in tasks for r in rows.of(task, arm)]
        if seconds := [value for value in every if value is not None]:
            said.append(f"{ARMS[arm].title} {np.mean(seconds):.1f} ({max(seconds):.0f})")
    return "Processor seconds a task, mean (longest): " + "; ".join(said) + "."


# -- what a version is judged by -------------------------------------------------------------------


def summary(measured: Iterable[Row]) -> Iterator[str]:
    """One line for every promise."""
    rows = Rows(measured)
    named, nameless = rows.tasks(True), rows.tasks(False)
    yield from ("", "#### Summary", "")
    if named:
        yield from _told_and_not_told(rows, named)
        yield from _vocabulary(rows, named)
        yield from _count(rows, named)
    if nameless:
        yield from _no_names(rows, nameless)


def _told_and_not_told(rows: Rows, named: list[TaskId]) -> Iterator[str]:
    novel = [task for task in named if task[2]]
    groups = {"L > 0": novel} | ({} if novel == named else {"with those of L = 0": named})
    for title, tasks in groups.items():
        for arm, what in (("told", "L given"), ("counted", "L unknown")):
            usual = [v for task in tasks for v in rows.every([task], rows.usual(task, arm))]
            yield (
                f"- {what}, {title}: with words {_mean(rows.every(tasks, f'{arm}+words'))}; words "
                f"where there are any {_mean(usual)}; without {_mean(rows.every(tasks, arm))}"
            )
        for words, what in (("+words", "with words"), ("", "without")):
            changes = rows.changes(tasks, f"counted{words}", f"told{words}")
            if changes:
                yield f"- L unknown minus L given, {title}, {what}: {_mean(changes, '+')}"


def _vocabulary(rows: Rows, named: list[TaskId]) -> Iterator[str]:
    """What it changes, on the mean of each set."""
    for arm, what in (("told", "L given"), ("counted", "L unknown")):
        said = []
        for pack in dict.fromkeys(task[0] for task in named):
            mine = [task for task in named if task[0] == pack]
            if changes := rows.changes(mine, f"{arm}+words", arm):
                said.append(f"{pack} {np.mean(changes):+.1f}")
        if said:
            yield f"- what words change, {what}: {', '.join(said)}"


def _count(rows: Rows, named: list[TaskId]) -> Iterator[str]:
    """How well L was counted; the factor is that of known and novel categories together."""
    counted = [row for task in named for row in rows.of(task, rows.usual(task, "counted"))]
    if not counted:
        return
    if some := [row for row in counted if row["novel"]]:
        error = [abs(row["found"] - row["novel"]) / row["novel"] for row in some]
        yield f"- median relative error of L: {100 * np.median(error):.0f} % of {len(some)} runs"

    def total(row: Row, novel: int) -> int:
        return max(1, row["known"] + novel)

    off = [abs(np.log(total(r, r["found"]) / total(r, r["novel"]))) for r in counted]
    inside = [row["range"][0] <= row["novel"] <= row["range"][1] for row in counted]
    wide = [total(r, r["range"][1]) / total(r, r["range"][0]) for r in counted]
    yield f"- mean |log(found / true)| of all categories: {np.mean(off):.3f}"
    yield (
        f"- the range holds the truth on {100 * np.mean(inside):.0f} % of {len(counted)} runs; "
        f"its upper end is {np.median(wide):.2f} times its lower one (median)"
    )
    if none := sorted(row["found"] for row in counted if not row["novel"]):
        yield f"- false categories at L = 0: median {np.median(none):.0f} of {none}"


def _no_names(rows: Rows, nameless: list[TaskId]) -> Iterator[str]:
    for arm in rows.arms(nameless):
        yield f"- no names, {ARMS[arm].title}: {_mean(rows.every(nameless, arm))}"
    if counted := [row for task in nameless for row in rows.of(task, "counted")]:
        off = [abs(np.log(max(row["found"], 1) / row["novel"])) for row in counted]
        yield f"- no names: mean |log(found / true)| {np.mean(off):.3f}"
    behind = {}
    for task in nameless:
        mine, others = rows.all(task, "counted"), [rows.every([task], arm) for arm in NEIGHBOURS]
        best = [value for values in others for value in values]
        if mine is not None and best:
            behind[f"{task[0]}: {task[2]}"] = mine - max(best)
    if behind:
        worst = min(behind, key=behind.__getitem__)
        yield f"- no names, beside the best neighbour: worst {behind[worst]:+.1f} ({worst})"


def beside(measured: Iterable[Row], earlier: Iterable[Row], name: str) -> Iterator[str]:
    """The change of All since another version, on the tasks and seeds that both have."""
    here, there = Rows(measured), Rows(earlier)
    yield from ("", f"#### Change of All since {name}", "")
    for names, kind in ((True, "some names known"), (False, "no names")):
        tasks = here.tasks(names)
        for arm in here.arms(tasks):
            changes = {}
            for task in tasks:
                mine, theirs = (rows.by.get((task, arm), {}) for rows in (here, there))
                both = [
                    row["accuracy"][0] - theirs[seed]["accuracy"][0]
                    for seed, row in mine.items()
                    if seed in theirs
                ]
                if both:
                    changes[f"{task[0]}: {task[1]} + {task[2]}"] = float(np.mean(both))
            if changes:
                worst = min(changes, key=changes.__getitem__)
                yield (
                    f"- {kind}, {ARMS[arm].title}: {_mean(list(changes.values()), '+')}, "
                    f"worst {changes[worst]:+.1f} ({worst})"
                )


def _mean(values: Sequence[float], sign: str = "") -> str:
    return f"{np.mean(values):{sign}.1f} ({len(values)} tasks)" if values else "not measured"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
