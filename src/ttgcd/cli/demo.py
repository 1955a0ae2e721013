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
    import shlex
    import sys
    from collections.abc import Sequence
    from pathlib import Path

    from ttgcd.bench.demo import run_demo
    from ttgcd.cli.progress import Progress
    from ttgcd.discovery import Discovery
    from ttgcd.wording import as_options, counted

    progress = Progress()
    finished = False

    def told(found: Discovery, others: Sequence[str]) -> None:
        nonlocal finished
        finished = True
        progress.close()
        print(as_options(found.text()), flush=True)
        print(
            f"\nThe run is finished and kept. Now {counted(len(others), 'other method')} on the "
            "same images, to compare; Ctrl-C ends that.",
            flush=True,
        )

    try:
        result = run_demo(
            args.domain,
            Path(args.out),
            args.preset,
            args.seed,
            RIVALS,
            progress,
            told=told,
            resume=args.resume,
            overwrite=args.overwrite,
        )
    except KeyboardInterrupt:
        progress.close()
        if not finished:
            raise
        print(f"ttgcd: not compared; the run is in {args.out}", file=sys.stderr)
        return 130
    finally:
        progress.close()
    print(f"\n{result.text()}\n\nttgcd look {shlex.quote(args.out)}  opens the report")
    return 0
