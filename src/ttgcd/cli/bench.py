"""ttgcd bench: run the paper's experiments, print its tables, draw its figures."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttgcd.cli import pack

if TYPE_CHECKING:
    from ttgcd.bench.experiment import Experiment
    from ttgcd.bench.results import Row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="all experiments, with what is measured")
    run = actions.add_parser("run", help="measure what has no result yet")
    run.add_argument("experiment", help="see `ttgcd bench list`")
    _add_run_arguments(run)
    settle = actions.add_parser("settle", help="SGD or Adam? run what decides, print the verdict")
    settle.set_defaults(experiment="settle")
    _add_run_arguments(settle)
    select = actions.add_parser("select", help="choose the best arm of every method of a sweep")
    select.add_argument("experiment", nargs="?", default="sweeps", help="default: sweeps")
    select.add_argument("--benchmark", help="rows of this benchmark")
    select.add_argument("-o", "--output", type=Path, help="write FILE for `bench run --selected`")
    table = actions.add_parser("table", help="print a table beside the published figures")
    table.add_argument("experiment")
    table.add_argument("--format", choices=("text", "markdown", "latex", "csv"), default="text")
    figure = actions.add_parser("figure", help="draw a figure")
    figure.add_argument("experiment")
    figure.add_argument("-o", "--output", type=Path, required=True, help=".png, .pdf or .svg")
    page = actions.add_parser("page", help="write all results on disk as one Markdown page")
    page.add_argument("-o", "--output", type=Path, required=True, help=".md; figures go to img/")
    pack.add_arguments(
        actions.add_parser("pack", help="features, labels and texts of a labelled set, by a model")
    )
    for action in (select, table, figure, page):
        action.add_argument("--results", type=Path, default=Path("results"))
        action.add_argument("--model", help="only rows of this model")


def _add_run_arguments(run: argparse.ArgumentParser) -> None:
    run.add_argument("--data", type=Path, help="folder that holds the datasets")
    run.add_argument("--out", type=Path, default=Path("results"), help="default: results")
    run.add_argument(
        "--methods",
        "--method",
        action="append",
        help="only these, by name or label, comma-separated; module:Class or an entry point of "
        "the group ttgcd.methods adds a method of your own",
    )
    run.add_argument("--benchmarks", help="these instead of the experiment's, comma-separated")
    run.add_argument(
        "--streams",
        help="only these corruptions or domains, comma-separated, of whichever benchmark has them",
    )
    run.add_argument(
        "--paper-rows", action="store_true", help="leave out rows that the paper does not have"
    )
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="an option of a method, a row or a benchmark, e.g. tent++.lr=3e-4, "
        "cifar10-c.severity=3, imagenet-c.subset=5000; may be repeated",
    )
    run.add_argument(
        "--selected", type=Path, metavar="FILE", help="the arms that `bench select` chose"
    )
    run.add_argument(
        "--plain-kmeans",
        action="store_true",
        help="estimated L: plain k-means above 20,000 images too, as the paper says (slow)",
    )
    run.add_argument(
        "--dry-run", action="store_true", help="print the plan and the time it would take"
    )
    run.add_argument("--seeds", help="comma-separated (default: the experiment's)")
    run.add_argument("--model", help="hub id, folder or 'mini' (default: the paper's)")
    run.add_argument("--limit", type=int, metavar="N", help="at most N images of each stream")
    run.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    run.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="ray: spread the streams over a cluster (default: local)",
    )
    run.add_argument(
        "--ray-address", metavar="ADDRESS", help="auto or ray://host:10001 (default: start one)"
    )
    run.add_argument("--threads", type=int, help="of each process (default: cores / workers)")
    run.add_argument("--device", default="auto")
    run.add_argument("--batch-size", type=int, default=128)


def run(args: argparse.Namespace) -> int:
    actions = {
        "list": _list,
        "run": _run,
        "settle": _settle,
        "select": _select,
        "table": _table,
        "figure": _figure,
        "page": _page,
        "pack": pack.run,
    }
    return actions[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from ttgcd.bench.experiment import experiment_names, load_experiment

    for name in experiment_names():
        experiment = load_experiment(name)
        benchmarks = ", ".join(target.name for target in experiment.targets)
        print(
            f"{name:12} {experiment.title} ({benchmarks}; {len(experiment.variants)} rows, "
            f"{len(experiment.seeds)} seeds)"
        )
    return 0


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _methods(experiment: Experiment, text: str) -> list[str]:
    """Names between commas; a label that holds commas itself is one name."""
    labels = {variant.label for variant in experiment.variants}
    pieces = text.split(",")
    found = []
    while pieces:
        sizes = range(len(pieces), 0, -1)
        size = next((n for n in sizes if ",".join(pieces[:n]).strip() in labels), 1)
        found.append(",".join(pieces[:size]).strip())
        pieces = pieces[size:]
    return [name for name in found if name]


def _run(args: argparse.Namespace) -> int:
    from ttgcd.bench.experiment import load_experiment
    from ttgcd.bench.forecast import forecast
    from ttgcd.bench.runner import Settings, run_experiment

    experiment = _asked_for(load_experiment(args.experiment), args)
    settings = Settings(
        data=args.data,
        out=args.out,
        limit=args.limit,
        workers=args.workers,
        device=args.device,
        batch_size=args.batch_size,
        threads=args.threads,
        engine=args.engine,
        ray_address=args.ray_address,
    )

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if args.dry_run:
        print(forecast(experiment, settings, say).text())
        return 0
    outcome = run_experiment(experiment, settings, say)
    _print_tables(load_experiment(args.experiment), args.out, None, "text")
    if outcome.failed:
        say(f"ttgcd: {len(outcome.failed)} runs failed; start again to retry them")
        return 1
    return 0


def _settle(args: argparse.Namespace) -> int:
    from ttgcd.bench.experiment import load_experiment
    from ttgcd.bench.settle import judge

    code = _run(args)
    if code == 0 and not args.dry_run:
        experiment = load_experiment(args.experiment)
        print(judge(experiment, _rows(args.out, experiment)).text())
    return code


def _asked_for(experiment: Experiment, args: argparse.Namespace) -> Experiment:
    """The experiment as the options of `bench run` want it."""
    from ttgcd.bench.options import with_method_options, with_settings
    from ttgcd.bench.selection import read_selection
    from ttgcd.errors import InputError

    try:
        seeds = None if args.seeds is None else [int(seed) for seed in _split(args.seeds) or []]
    except ValueError:
        raise InputError(f"--seeds {args.seeds!r}: give whole numbers, e.g. 0,1,2") from None
    for name in ("limit", "workers", "batch_size", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    methods = None if args.methods is None else _methods(experiment, ",".join(args.methods))
    # A method of the user's own is looked for beside the command, as `python -m` does.
    sys.path.insert(0, os.getcwd())
    if args.paper_rows:
        experiment = experiment.paper_rows()
    experiment = experiment.select(
        methods=methods,
        benchmarks=_split(args.benchmarks),
        seeds=seeds,
        models=None if args.model is None else [args.model],
        streams=_split(args.streams),
    )
    if args.plain_kmeans:
        if experiment.novel != "estimated":
            raise InputError(f"--plain-kmeans: {experiment.name} does not estimate L")
        experiment = replace(experiment, novel="estimated-plain")
    # What the command line sets is applied first: it wins over the selection.
    experiment = with_settings(experiment, args.set)
    if args.selected is not None:
        chosen = read_selection(args.selected).options()
        experiment = with_method_options(experiment, chosen, must_match=False)
    return experiment


def _rows(results: Path, experiment: Experiment) -> list[Row]:
    from ttgcd.bench.results import read_results
    from ttgcd.errors import InputError

    if not results.is_dir():
        raise InputError(f"{results}: no such folder; give --results, or `ttgcd bench run` first")
    contents = read_results(results / f"{experiment.name}.jsonl")
    for note in contents.notes:
        print(f"ttgcd: warning: {note}", file=sys.stderr)
    return contents.rows


def _print_tables(experiment: Experiment, results: Path, model: str | None, form: str) -> None:
    from ttgcd.bench.paper_table import build_tables
    from ttgcd.bench.render import render

    models = None if model is None else [model]
    tables = build_tables(experiment, _rows(results, experiment), models)
    print("\n".join(render(table, form) for table in tables))


def _select(args: argparse.Namespace) -> int:
    from ttgcd.bench.experiment import load_experiment
    from ttgcd.bench.selection import select_arms, write_selection

    experiment = load_experiment(args.experiment)
    rows = _rows(args.results, experiment)
    chosen = select_arms(experiment, rows, args.model, args.benchmark)
    print(chosen.text())
    if args.output is not None:
        write_selection(chosen, args.output)
        print(args.output)
    return 0


def _table(args: argparse.Namespace) -> int:
    from ttgcd.bench.experiment import load_experiment

    _print_tables(load_experiment(args.experiment), args.results, args.model, args.format)
    return 0


def _figure(args: argparse.Namespace) -> int:
    from ttgcd.bench.experiment import load_experiment
    from ttgcd.bench.figures import draw
    from ttgcd.bench.results import accuracy_rows

    experiment = load_experiment(args.experiment)
    rows = _rows(args.results, experiment)
    if args.model is not None:
        rows = [row for row in rows if row["model"] == args.model]
    print(draw(experiment, rows, args.output, accuracy_rows(args.results)))
    return 0


def _page(args: argparse.Namespace) -> int:
    from ttgcd.bench.page import write_page

    print(write_page(args.results, args.output, args.model))
    return 0
