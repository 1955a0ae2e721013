"""ttgcd evaluate: score a run against labels."""

from __future__ import annotations

import argparse
import sys

HELP = "score a run against a file of labels"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("assignments", help="assignments.parquet, or the folder a run left")
    parser.add_argument("labels", help="CSV with the columns id,label (class names)")
    parser.add_argument(
        "--known",
        help="known class names: 'cat,dog' or @names.txt (a run's folder remembers its own)",
    )
    parser.add_argument("--strict", action="store_true", help="fail when an id has no counterpart")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    import json

    from ttgcd.errors import InputError
    from ttgcd.evaluation.files import evaluate_files
    from ttgcd.streams.labels import read_names

    known = read_names(args.known) if args.known else None
    result = evaluate_files(args.assignments, args.labels, known)
    if args.strict and (result.unlabelled or result.unassigned):
        raise InputError(
            f"{result.unlabelled} samples have no label and {result.unassigned} labels have no "
            "sample; complete the files or leave out --strict"
        )
    for note in result.notes:
        print(f"ttgcd: warning: {note}", file=sys.stderr)
    if args.json:
        print(json.dumps(result.as_json(), indent=2))
    else:
        print(_text(result))
    return 0


def _text(result) -> str:  # type: ignore[no-untyped-def]
    percent = result.scores.as_percent()

    def show(key: str) -> str:
        value = percent[key]
        return "  n/a" if value != value else f"{value:5.1f}"

    lines = [
        f"Clustering accuracy over {percent['samples']} samples "
        f"({len(result.known)} known classes, {len(result.novel)} novel), one assignment:",
        f"  All {show('all')}   Known {show('known')}   Novel {show('novel')}",
        "Beside it, percent:",
        f"  {show('named_known_accuracy')}  known samples that carry the right name",
        f"  {show('known_matched_to_own')}  known classes matched to their own id",
        f"  {show('novelty_f1')}  novelty flag, F1 "
        f"(precision {show('novelty_precision').strip()}, recall {show('novelty_recall').strip()})",
        f"  {show('novelty_auroc')}  novelty score, AUROC",
        f"  {show('nmi')}  normalised mutual information",
        f"  {show('ari')}  adjusted Rand index",
    ]
    if result.unlabelled or result.unassigned:
        lines.append(
            f"Not scored: {result.unlabelled} samples without a label, "
            f"{result.unassigned} labels without a sample."
        )
    return "\n".join(lines)
