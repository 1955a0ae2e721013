"""Discovery on packs of features: told and not told the number of novel categories, with and
without names, with and without a vocabulary, beside k-means, UMAP + HDBSCAN and EVoC.

    python -m benchmarks.packs FOLDER... --out packs.jsonl
    python -m benchmarks.packs FOLDER... --out packs.jsonl --only "food101*" --arms told,kmeans
    python -m benchmarks.packs --table --out packs.jsonl [--beside earlier.jsonl] [--page PAGE.md]

A folder holds packs that `ttgcd bench pack` made (or anybody else: docs/real-clip.md says what is
in one). Rows that are in the file already are not measured again. The neighbours need
`pip install "ttgcd[neighbours]"`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.pack_arms import ARMS, measured
from benchmarks.pack_tables import beside, summary, tables
from benchmarks.pack_tasks import TaskKey, draw, tasks_of
from ttgcd.errors import InputError

#: Between them a page holds what was measured.
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
Job = tuple[TaskKey, int, str]
NEEDS = {"umap-hdbscan-5": "hdbscan", "umap-hdbscan-10": "hdbscan", "evoc": "evoc"}


def jobs(tasks: list[TaskKey], seeds: list[int], arms: list[str]) -> Iterator[Job]:
    """Seed by seed, so that a run that was stopped has whole tables."""
    for seed in seeds:
        for task in tasks:
            for arm in arms:
                if not ARMS[arm].words or draw(task, seed).words is not None:
                    yield task, seed, arm


def measure(job: Job) -> dict[str, Any]:
    task, seed, arm = job
    return {**_key(job), **measured(draw(task, seed), arm, seed)}


def _key(job: Job) -> dict[str, Any]:
    task, seed, arm = job
    return {"pack": task.pack, "known": task.known, "novel": task.novel, "seed": seed, "arm": arm}


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[part] for part in ("pack", "known", "novel", "seed", "arm"))


def run(args: argparse.Namespace) -> None:
    tasks = [t for t in tasks_of(args.folders) if any(fnmatch(str(t), p) for p in args.only)]
    if not tasks:
        raise InputError(f"no task matches --only {','.join(args.only)}")
    for module in sorted({NEEDS[arm] for arm in args.arms if arm in NEEDS}):
        if find_spec(module) is None:
            raise InputError(f'{module} is not installed: pip install "ttgcd[neighbours]"')
    done = {_place(row) for row in read(args.out)}
    todo = [j for j in jobs(tasks, args.seeds, args.arms) if _place(_key(j)) not in done]
    print(f"{len(todo)} to measure, {len(done)} in {args.out}", flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("a", encoding="utf-8") as file:
        for number, row in enumerate(_measured(todo, args.jobs), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            task = f"{row['pack']}:{row['known']}+{row['novel']}"
            print(
                f"{number}/{len(todo)} {task} seed {row['seed']} {row['arm']}: "
                f"{row['accuracy'][0]:.1f} in {row['seconds']:.1f} s",
                flush=True,
            )


def _measured(todo: list[Job], processes: int) -> Iterator[dict[str, Any]]:
    if processes == 1:
        yield from map(measure, todo)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(measure, todo)


def read(path: Path) -> list[dict[str, Any]]:
    """Rows so far; a last line that was cut short by a stop is measured again."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        path.write_text("".join(lines[:-1]), encoding="utf-8")
        lines.pop()
    return [json.loads(line) for line in lines]


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.packs", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("folders", nargs="*", type=Path, help="folders of packs")
    parser.add_argument("--out", type=Path, default=Path("packs.jsonl"), help="rows, appended")
    parser.add_argument("--only", type=_names, default=["*"], help="tasks, as 'food101*,*:0+*'")
    parser.add_argument("--arms", type=_names, default=list(ARMS), help=", ".join(ARMS))
    parser.add_argument("--seeds", type=lambda s: [int(x) for x in _names(s)], default=[0, 1])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--table", action="store_true", help="measure nothing, print the tables")
    parser.add_argument("--beside", type=Path, help="rows of another version, to compare with")
    parser.add_argument("--page", type=Path, help="Markdown page to write the tables into")
    args = parser.parse_args(argv)
    if unknown := [arm for arm in args.arms if arm not in ARMS]:
        parser.error(f"no such arm: {unknown[0]}; there are {', '.join(ARMS)}")
    if args.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {args.jobs}")
    try:
        if not args.table:
            if not args.folders:
                parser.error("give a folder of packs, or --table")
            run(args)
        rows = [row for row in read(args.out) if _asked(row, args)]
        if not rows:
            raise InputError(f"{args.out} has no row to show")
        lines = [*tables(rows), *summary(rows)]
        if args.beside is not None:
            lines += beside(rows, read(args.beside), args.beside.stem)
        print("\n".join(lines))
        if args.page is not None:
            write_into(args.page, lines)
    except InputError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    return 0


def write_into(page: Path, lines: list[str]) -> None:
    """Put the lines between the two marks of a page, in the place of those before."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{page} has no {BEGIN} with {END} behind it")
    page.write_text("\n".join([before + begin, *lines, "", end + after]), encoding="utf-8")


def _asked(row: dict[str, Any], args: argparse.Namespace) -> bool:
    task = f"{row['pack']}:{row['known']}+{row['novel']}"
    return (
        row["arm"] in args.arms
        and row["seed"] in args.seeds
        and any(fnmatch(task, pattern) for pattern in args.only)
    )


if __name__ == "__main__":
    raise SystemExit(main())
