"""ttgcd corrupt: corrupted copies of a set of images, in the official layouts."""

from __future__ import annotations

import argparse
import sys

HELP = "make corrupted copies of images (19 kinds, 5 severities)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="folder with images.npy and labels.npy, or of image files")
    parser.add_argument("target", help="new folder for the result")
    add_recipe_arguments(parser)
    parser.add_argument(
        "--layout",
        choices=("auto", "cifar", "imagenet", "folder"),
        default="auto",
        help="cifar: <kind>.npy; imagenet: <kind>/<severity>/<class>/*.JPEG at 224 pixels; folder: "
        "the same with whole images as PNG (auto: cifar for arrays, folder for files)",
    )
    parser.add_argument(
        "--constants",
        choices=("auto", "cifar", "imagenet"),
        default="auto",
        help="table of constants (auto: by image size)",
    )


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that `ttgcd data prepare` shares."""
    parser.add_argument(
        "--kind", default="eval", help="eval (15), held-out (4), all (19), or names with commas"
    )
    parser.add_argument("--severity", default="5", help="5, 1,3 or 1..5 (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the whole set (default 0)")
    parser.add_argument("--workers", type=int, help="processes (default: one a core)")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    source = Path(args.source)
    layout = args.layout
    if layout == "auto":
        layout = "cifar" if (source / "images.npy").exists() else "folder"
    return make(args, source, Path(args.target), layout, args.constants)


def make(args, source, target, layout, constants) -> int:  # type: ignore[no-untyped-def]
    """Make the set that parsed recipe arguments ask for."""
    import os
    from functools import partial

    from ttgcd.cli.progress import Progress
    from ttgcd.corruptions.files import Recipe, corrupt_array, corrupt_folder
    from ttgcd.errors import InputError

    kinds, severities = parse_kinds(args.kind), parse_severities(args.severity)
    workers = args.workers if args.workers is not None else os.cpu_count() or 1
    if workers < 1:
        raise InputError(f"--workers is {workers}: it must be at least 1")
    if args.seed < 0:
        raise InputError(f"--seed is {args.seed}: it must be 0 or more")
    recipe = Recipe(severities, args.seed, constants)
    show = Progress()
    step = partial(show, "corrupt")
    ready, problems = [], []
    try:
        if layout == "cifar":
            ready = corrupt_array(source, target, kinds, recipe, workers, step)
        else:
            problems = corrupt_folder(source, target, kinds, recipe, layout, workers, step)
    finally:
        show.close()
    if ready:
        print(f"already there: {', '.join(ready)}", file=sys.stderr)
    for line in problems[:20]:
        print(f"ttgcd: warning: not read: {line}", file=sys.stderr)
    if len(problems) > 20:
        print(f"ttgcd: warning: and {len(problems) - 20} more", file=sys.stderr)
    print(
        f"{target}: {len(kinds)} kinds, severity {', '.join(map(str, severities))}, "
        f"{layout} layout, seed {args.seed} (made here, not the published files)"
    )
    return 1 if problems else 0


def parse_kinds(text: str) -> tuple[str, ...]:
    """``eval``, ``held-out``, ``all``, or names with commas."""
    from ttgcd.corruptions import ALL_KINDS, HELD_OUT, KINDS
    from ttgcd.errors import InputError

    groups = {"all": ALL_KINDS, "eval": KINDS, "held-out": HELD_OUT}
    if text in groups:
        return groups[text]
    kinds = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [kind for kind in kinds if kind not in ALL_KINDS]
    if unknown or not kinds:
        raise InputError(
            f"--kind {text!r}: {(unknown or ['nothing'])[0]!r} is no corruption; "
            f"use eval, held-out, all or some of {', '.join(ALL_KINDS)}"
        )
    return kinds


def parse_severities(text: str) -> tuple[int, ...]:
    """``5``, ``1,3`` or ``1..5``, sorted."""
    from ttgcd.errors import InputError

    chosen: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        if not first.isdecimal() or (dots and not last.isdecimal()):
            raise InputError(f"--severity {text!r}: write 5, or 1,3, or 1..5")
        chosen.update(range(int(first), int(last or first) + 1))
    if not chosen or min(chosen) < 1 or max(chosen) > 5:
        raise InputError(f"--severity {text!r}: severities go from 1 to 5")
    return tuple(sorted(chosen))
