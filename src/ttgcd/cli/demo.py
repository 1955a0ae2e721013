"""ttgcd demo: discovery on one style of IconShift, beside what people would use instead."""

from __future__ import annotations

import argparse

from ttgcd.methods.registry import DEFAULT_PRESET, PRESETS

#: what people would use instead, on the same features
RIVALS = ("zero-shot+kmeans", "kmeans", "ss-kmeans")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--domain", help="style domain of IconShift (default: line)")
    parser.add_argument("--out", default="ttgcd-demo", help="output folder (default: ttgcd-demo)")
    parser.add_argument(
        "--preset",
        default=DEFAULT_PRESET,
        help=f"{' or '.join(PRESETS)} (default: {DEFAULT_PRESET})",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted demo")
    parser.add_argument("--overwrite", action="store_true", help="replace the run in --out")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from ttgcd.bench.demo import run_demo
    from ttgcd.cli.progress import Progress
    from ttgcd.wording import as_options

    progress = Progress()
    try:
        result = run_demo(
            args.domain,
            Path(args.out),
            args.preset,
            args.seed,
            RIVALS,
            progress,
            resume=args.resume,
            overwrite=args.overwrite,
        )
    finally:
        progress.close()
    print(as_options(result.text()))
    return 0
