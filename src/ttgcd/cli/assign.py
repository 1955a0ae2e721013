"""ttgcd assign: further images to the categories of a finished run, without learning from them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="output folder of a finished run")
    parser.add_argument("source", nargs="+", help="the images, as for discover")
    parser.add_argument(
        "--out", help="folder for assignments.parquet and rejected.csv (default: CSV on the screen)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    from ttgcd.cli.progress import shown
    from ttgcd.discovery.saved import SavedRun
    from ttgcd.errors import InputError
    from ttgcd.wording import counted

    place = Path(args.out) if args.out else None
    if place is not None and place.exists():
        raise InputError(f"{args.out!r} exists: choose another `out=...`")
    source = args.source[0] if len(args.source) == 1 else args.source
    with shown(args.quiet) as progress:
        found = SavedRun(args.run).predict(source, progress)
    if place is None:
        import pyarrow.csv

        pyarrow.csv.write_csv(found.table, sys.stdout.buffer)
    else:
        import pyarrow.parquet as pq

        from ttgcd.engines.rejected import RejectedFile

        place.mkdir(parents=True)
        pq.write_table(found.table, place / "assignments.parquet", compression="zstd")
        rejected = RejectedFile(place / "rejected.csv")
        rejected.begin()
        rejected.add(found.rejected)
        print(f"{counted(found.table.num_rows, 'sample')} in {place / 'assignments.parquet'}")
    if found.rejected:
        print(f"{counted(len(found.rejected), 'sample')} could not be read", file=sys.stderr)
    return 0
