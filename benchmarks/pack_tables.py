"""The tables of benchmarks/packs.py, and the lines that a version is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
            self.by.setdefault((task_of(row), row["arm"]), {})[row["seed"]] = row

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

    def best(self, task: TaskId, arm: str) -> str:
        """The arm as a user has it: with the vocabulary, where there is one."""
        with_words = f"{arm}+words"
        return with_words if (task, with_words) in self.by else arm

    def pairs(self, tasks: Sequence[TaskId], one: str, other: str) -> list[tuple[float, float]]:
        """Means of two arms, over the tasks that have both."""
        both = ((self.all(t, one), self.all(t, other)) for t in tasks)
        return [(a, b) for a, b in both if a is not None and b is not None]


def task_of(row: Row) -> TaskId:
    return row["pack"], row["known"], row["novel"]


def print_tables(measured: Iterable[Row]) -> None:
    """Mean All by task and arm: with some names known, and with none."""
    rows = Rows(measured)
    for names, title in ((True, "Some names known"), (False, "No names")):
        tasks = rows.tasks(names)
        if tasks:
            print(f"\n#### {title}: mean All\n")
            _print_accuracy(rows, tasks, names)
            _print_seconds(rows, tasks)


def _print_accuracy(rows: Rows, tasks: Sequence[TaskId], names: bool) -> None:
    arms = rows.arms(tasks)
    heads = [ARMS[arm].title for arm in arms]
    print("| | samples | " + " | ".join(heads) + " | found |")
    print("|---|" + "---:|" * (len(arms) + 2))
    for task in tasks:
        pack, known, novel = task
        some = next(r for arm in arms for r in rows.of(task, arm))
        cells = [_cell(rows.all(task, arm)) for arm in arms]
        counted = rows.of(task, rows.best(task, "counted"))
        found = ", ".join(f"{r['found']} ({_range(r)})" for r in counted)
        size = f"{known} + {novel}" if names else str(novel)
        print(f"| {pack}: {size} | {some['samples']} | " + " | ".join(cells) + f" | {found} |")
    whole = [task for task in tasks if all(rows.all(task, arm) is not None for arm in arms)]
    for title, some_tasks in ((f"mean of {len(tasks)}", tasks), (f"of {len(whole)}", whole)):
        cells = [
            _cell(_mean(rows.all(task, arm) for task in some_tasks))
            if all(rows.all(task, arm) is not None for task in some_tasks)
            else ""
            for arm in arms
        ]
        if some_tasks and any(cells):
            print(f"| **{title}** | | " + " | ".join(cells) + " | |")
        if whole == list(tasks):
            break


def _print_seconds(rows: Rows, tasks: Sequence[TaskId]) -> None:
    said = []
    for arm in rows.arms(tasks):
        seconds = [r["cpu_seconds"] for task in tasks for r in rows.of(task, arm)]
        said.append(f"{ARMS[arm].title} {np.mean(seconds):.1f} ({max(seconds):.0f})")
    print("\nCPU seconds a task, mean (longest): " + "; ".join(said) + ".")


# -- what a version is judged by ------------------------------------------------------------------


def print_summary(measured: Iterable[Row]) -> None:
    """One line for every promise."""
    rows = Rows(measured)
    print("\n#### Summary\n")
    named, nameless = rows.tasks(True), rows.tasks(False)
    _print_means(rows, named)
    _print_not_told(rows, named)
    _print_words(rows, named)
    _print_count(rows, named)
    _print_no_names(rows, nameless)


def _print_means(rows: Rows, named: list[TaskId]) -> None:
    novel = [task for task in named if task[2]]
    for title, tasks in (("L > 0", novel), ("L = 0 among them", named)):
        if title != "L > 0" and tasks == novel:
            continue
        for arm, what in (("told", "L given"), ("counted", "L unknown")):
            with_words = _all_of(rows, tasks, f"{arm}+words")
            either = [rows.all(task, rows.best(task, arm)) for task in tasks]
            plain = _all_of(rows, tasks, arm)
            print(
                f"- {what}, {title}: with words {_said(with_words)}; words where there are any "
                f"{_said(either)}; without words {_said(plain)}"
            )


def _print_not_told(rows: Rows, named: list[TaskId]) -> None:
    for title, tasks in (("L > 0", [t for t in named if t[2]]), ("all", named)):
        for words in ("+words", ""):
            pairs = rows.pairs(tasks, f"counted{words}", f"told{words}")
            if pairs:
                change = np.mean([a - b for a, b in pairs])
                what = "words" if words else "no words"
                print(f"- L unknown minus L given, {title}, {what}: {change:+.1f} ({len(pairs)})")


def _print_words(rows: Rows, named: list[TaskId]) -> None:
    """What the vocabulary changes, on the mean of each set."""
    for arm, what in (("told", "L given"), ("counted", "L unknown")):
        changes = {}
        for pack in dict.fromkeys(task[0] for task in named):
            mine = [task for task in named if task[0] == pack]
            pairs = rows.pairs(mine, f"{arm}+words", arm)
            if pairs:
                changes[pack] = float(np.mean([a - b for a, b in pairs]))
        if changes:
            each = ", ".join(f"{pack} {change:+.1f}" for pack, change in changes.items())
            print(f"- words change, {what}: {each}")


def _print_count(rows: Rows, named: list[TaskId]) -> None:
    counted = [row for task in named for row in rows.of(task, rows.best(task, "counted"))]
    some = [row for row in counted if row["novel"]]
    if some:
        error = [abs(row["found"] - row["novel"]) / row["novel"] for row in some]
        print(f"- median relative error of L: {100 * np.median(error):.0f} % ({len(some)} runs)")
    if counted:
        off = [
            abs(np.log((row["known"] + row["found"]) / (row["known"] + row["novel"])))
            for row in counted
        ]
        inside = [row["range"][0] <= row["novel"] <= row["range"][1] for row in counted]
        wide = [
            (row["known"] + row["range"][1]) / (row["known"] + row["range"][0]) for row in counted
        ]
        print(f"- mean |log(found / true)| of all categories: {np.mean(off):.3f}")
        print(
            f"- the range holds the truth on {100 * np.mean(inside):.0f} % of {len(counted)} runs; "
            f"its upper end is {np.median(wide):.2f} times its lower one (median)"
        )
    none = [row["found"] for row in counted if not row["novel"]]
    if none:
        print(f"- false categories at L = 0: median {np.median(none):.0f} of {sorted(none)}")


def _print_no_names(rows: Rows, nameless: list[TaskId]) -> None:
    for arm in ("counted", "counted+words", "told", "told+words", *NEIGHBOURS):
        if values := _all_of(rows, nameless, arm):
            print(f"- no names, {ARMS[arm].title}: {_said(values)}")
    counted = [row for task in nameless for row in rows.of(task, "counted")]
    if counted:
        off = [abs(np.log(max(row["found"], 1) / row["novel"])) for row in counted]
        print(f"- no names: mean |log(found / true)| {np.mean(off):.3f}")
    behind = {}
    for task in nameless:
        mine = rows.all(task, "counted")
        others = [x for arm in NEIGHBOURS if (x := rows.all(task, arm)) is not None]
        if mine is not None and others:
            behind[f"{task[0]}:{task[2]}"] = mine - max(others)
    if behind:
        worst = min(behind, key=behind.__getitem__)
        print(f"- no names, beside the best neighbour: worst {behind[worst]:+.1f} ({worst})")


def print_beside(measured: Iterable[Row], earlier: Iterable[Row], name: str) -> None:
    """The change of All since another version, on what both have measured."""
    here, there = Rows(measured), Rows(earlier)
    print(f"\n#### Change of All since {name}\n")
    for names, kind in ((True, "some names known"), (False, "no names")):
        tasks = here.tasks(names)
        for arm in here.arms(tasks):
            changes = {}
            for task in tasks:
                seeds = here.by.get((task, arm), {}).keys() & there.by.get((task, arm), {}).keys()
                mine = here.by.get((task, arm), {})
                theirs = there.by.get((task, arm), {})
                if seeds:
                    changes[f"{task[0]}:{task[1]}+{task[2]}"] = float(
                        np.mean([mine[s]["accuracy"][0] - theirs[s]["accuracy"][0] for s in seeds])
                    )
            if changes:
                worst = min(changes, key=changes.__getitem__)
                print(
                    f"- {kind}, {ARMS[arm].title}: {np.mean(list(changes.values())):+.1f} over "
                    f"{len(changes)} tasks, worst {changes[worst]:+.1f} ({worst})"
                )


def _all_of(rows: Rows, tasks: Sequence[TaskId], arm: str) -> list[float]:
    return [value for task in tasks if (value := rows.all(task, arm)) is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    kept = [value for value in values if value is not None]
    return float(np.mean(kept)) if kept else None


def _said(values: Sequence[float | None]) -> str:
    kept = [value for value in values if value is not None]
    return f"{np.mean(kept):.1f} ({len(kept)} tasks)" if kept else "not measured"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _range(row: Row) -> str:
    low, high = row["range"]
    return f"{low}-{high}"
