"""The default method without each of its ingredients, on packs of features.

    python -m benchmarks.ablation FOLDER... --out results/ablation.jsonl
    python -m benchmarks.ablation FOLDER... --without "Ward tree,nulls" --only "whurs19*"
    python -m benchmarks.ablation --table --out results/ablation.jsonl [--page PAGE.md]

What clusters is left out with L given, what counts with L unknown; with a vocabulary where a pack
has one, and without. Rows that are in the file already are not measured again; small tasks come
first, each without everything in turn, so that a run that was stopped can be read.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ingredients import COUNTED, INGREDIENTS, TOLD, without
from benchmarks.pack_arms import ARMS, measured
from benchmarks.pack_tasks import TaskKey, draw, tasks_of
from benchmarks.packs import read, write_into
from benchmarks.remembered import forget, remembering
from ttgcd.errors import InputError

Job = tuple[TaskKey, int, str, str]  # task, seed, what is left out, arm
Row = dict[str, Any]
Place = tuple[Any, ...]


def jobs(args: argparse.Namespace) -> Iterator[Job]:
    tasks = [t for t in tasks_of(args.folders) if any(fnmatch(str(t), p) for p in args.only)]
    if not tasks:
        raise InputError(f"no task matches --only {','.join(args.only)}")
    for seed in args.seeds:
        size = {task: len(draw(task, seed).labels) for task in tasks}
        for task in sorted(tasks, key=lambda task: size[task]):
            for left_out in args.without:
                for arm in _arms(task, seed, left_out):
                    yield task, seed, left_out, arm


def _arms(task: TaskKey, seed: int, left_out: str) -> list[str]:
    """Without names there is nothing that a vocabulary is told by."""
    ingredient = INGREDIENTS[left_out]
    if not task.known:
        return ["counted"] if ingredient.nameless else []
    words = draw(task, seed).words is not None
    return [arm for arm in ingredient.arms if words or not ARMS[arm].words]


def measure(job: Job) -> Row:
    task, seed, left_out, arm = job
    _at(task, seed)
    trust = not INGREDIENTS[left_out].trusts
    with remembering(trust, arm in COUNTED), without(left_out):
        row = {**_key(job), **measured(draw(task, seed), arm, seed)}
    del row["seconds"], row["cpu_seconds"]  # what is remembered takes none
    return row


@lru_cache(maxsize=1)
def _at(task: TaskKey, seed: int) -> None:
    """Called for every measurement, run when the task is another."""
    forget()


def _key(job: Job) -> Row:
    task, seed, left_out, arm = job
    key = {"pack": task.pack, "known": task.known, "novel": task.novel, "seed": seed, "arm": arm}
    return {"left_out": left_out, **key}


def _place(row: Row) -> Place:
    return tuple(row[part] for part in ("pack", "known", "novel", "seed", "arm", "left_out"))


def run(args: argparse.Namespace) -> None:
    done = {_place(row) for row in read(args.out)}
    todo = [job for job in jobs(args) if _place(_key(job)) not in done]
    print(f"{len(todo)} to measure, {len(done)} in {args.out}", flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("a", encoding="utf-8") as file:
        for number, row in enumerate(_measured(todo, args.jobs), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            task = f"{row['pack']}:{row['known']}+{row['novel']}"
            print(
                f"{number}/{len(todo)} {task} {row['arm']} without {row['left_out']}: "
                f"{row['accuracy'][0]:.1f}",
                flush=True,
            )


def _measured(todo: list[Job], processes: int) -> Iterator[Row]:
    if processes == 1:
        yield from map(measure, todo)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(measure, todo)


# -- tables ----------------------------------------------------------------------------------------


def tables(rows: list[Row]) -> Iterator[str]:
    """Mean All by what is left out, and the change, on the tasks that both have."""
    by: dict[tuple[str, str], dict[Place, Row]] = {}
    for row in rows:
        arm = row["arm"] if row["known"] else "no names"
        task = tuple(row[part] for part in ("pack", "known", "novel", "seed"))
        by.setdefault((row["left_out"], arm), {})[task] = row
    groups = {"L given": TOLD, "L unknown": (*COUNTED, "no names")}
    for title, arms in groups.items():
        left_out = [what for what in INGREDIENTS if any((what, arm) in by for arm in arms)]
        if title == "L unknown":
            left_out = [w for w in left_out if set(INGREDIENTS[w].arms) & set(COUNTED)]
        if not left_out:
            continue
        heads = [_head(arm, by.get(("nothing", arm), {})) for arm in arms]
        yield from ("", f"#### Left out, {title}: mean All (change)", "")
        yield f"| left out | {' | '.join(heads)} |"
        yield "|---|" + "---:|" * len(arms)
        for what in left_out:
            cells = [_cell(by.get((what, a), {}), by.get(("nothing", a), {})) for a in arms]
            yield f"| {what} | {' | '.join(cells)} |"


def _head(arm: str, whole: dict[Place, Row]) -> str:
    title = {"told+words": "words", "told": "no words"}.get(arm)
    title = title or {"counted+words": "words", "counted": "no words"}.get(arm, arm)
    return f"{title}, {len(whole)} tasks"


def _cell(mine: dict[Place, Row], whole: dict[Place, Row]) -> str:
    """Mean All, its change, and where L is unknown by which factor the count is wrong."""
    both = [task for task in mine if task in whole]
    if not both:
        return ""
    now, before = (np.array([r[t]["accuracy"][0] for t in both]) for r in (mine, whole))
    cell = f"{now.mean():.1f}"
    if mine is not whole:
        cell += f" ({(now - before).mean():+.1f}{_error(now - before)})"
    if "range" in mine[both[0]]:
        cell += f", {np.exp(np.mean([_wrong(mine[t]) for t in both])):.2f}"
    return cell + (f", {len(both)} of {len(whole)} tasks" if len(both) < len(whole) else "")


def _error(changes: np.ndarray) -> str:
    """The standard error of their mean, over the tasks."""
    return f" ±{changes.std(ddof=1) / len(changes) ** 0.5:.1f}" if len(changes) > 1 else ""


def _wrong(row: Row) -> float:
    """|log| of categories found, known ones included, by those that there are."""
    return abs(float(np.log((row["known"] + row["found"]) / (row["known"] + row["novel"]))))


# -- the command -----------------------------------------------------------------------------------


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.ablation", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("folders", nargs="*", type=Path, help="folders of packs")
    parser.add_argument("--out", type=Path, default=Path("ablation.jsonl"), help="rows, appended")
    parser.add_argument("--only", type=_names, default=["*"], help="tasks, as 'food101*,*:0+*'")
    parser.add_argument(
        "--without", type=_names, default=list(INGREDIENTS), help=", ".join(INGREDIENTS)
    )
    parser.add_argument("--seeds", type=lambda s: [int(x) for x in _names(s)], default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--table", action="store_true", help="measure nothing, print the tables")
    parser.add_argument("--page", type=Path, help="Markdown page to write the tables into")
    args = parser.parse_args(argv)
    if unknown := [what for what in args.without if what not in INGREDIENTS]:
        parser.error(f"no such ingredient: {unknown[0]}; there are {', '.join(INGREDIENTS)}")
    if args.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {args.jobs}")
    try:
        if not args.table:
            if not args.folders:
                parser.error("give a folder of packs, or --table")
            run(args)
        lines = list(tables(read(args.out)))
        if not lines:
            raise InputError(f"{args.out} has no row to show")
        print("\n".join(lines))
        if args.page is not None:
            write_into(args.page, lines)
    except InputError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
