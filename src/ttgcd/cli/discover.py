"""ttgcd discover: a folder of images and a list of names in, named and grouped images out."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from ttgcd.cli.stream_options import (
    add_known,
    add_model_and_texts,
    add_reading,
    source_of,
    stream_settings,
)
from ttgcd.errors import InputError
from ttgcd.methods.registry import DEFAULT_PRESET, PRESETS

if TYPE_CHECKING:
    from ttgcd.discovery import Discovery
    from ttgcd.methods.answer import Category

#: Options of the re-alignment: PACT's own, or with --realign those of the stage before a method.
STAGE_ONE = (
    *("warmup", "epochs", "lr", "optimiser", "realign_batch_size", "normaliser"),
    *("realign_depth", "early_stop"),
)
#: What decides the answers of a run that goes on from an earlier one is the earlier one's.
_THE_RUNS = (
    *("known", "preset", "method", "set", "anchors", "template", "in_order", "buffer_labels"),
    *("realign", *STAGE_ONE, "novel", "seed", "model"),
    *("batch_size", "precision", "word_embeddings", "logit_scale"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="+",
        help="folder, image files, list file (.txt), '-' for paths on standard input, .tar shards, "
        ".parquet, .npy of images, or .npy of embeddings (with --known give --anchors), here or at "
        "an address (s3://bucket/photos); several are read one after the other",
    )
    add_known(parser)
    parser.add_argument(
        "--from",
        dest="earlier",
        metavar="RUN",
        help="go on from a finished run: its names, model, method and categories, these images",
    )
    parser.add_argument(
        "--novel",
        default="auto",
        help="number of novel categories (of groups without --known), or auto (default: auto)",
    )
    parser.add_argument("--out", default="ttgcd-out", help="output folder (default: ttgcd-out)")
    add_model_and_texts(parser)
    parser.add_argument(
        "--abstain",
        type=float,
        metavar="P",
        help="answers with a confidence below P go to a pile for review (review.csv)",
    )
    parser.add_argument(
        "--level",
        metavar="LEVEL",
        help="what to show: coarse, found, fine or a number of groups; all levels come of one run "
        "(default: found)",
    )
    parser.add_argument("--labels", help="CSV id,label: true class names, for scoring only")
    method = parser.add_argument_group("method")
    method.add_argument(
        "--preset",
        help=f"a method under a named configuration: {', '.join(PRESETS)} "
        f"(default: {DEFAULT_PRESET})",
    )
    method.add_argument("--method", metavar="NAME", help="a registered method, or module:Class")
    method.add_argument(
        "--set",
        action="append",
        metavar="OPTION=VALUE",
        help="one option of the method, e.g. evidence_min=2; may be repeated",
    )
    method.add_argument(
        "--buffer-labels",
        choices=("zero-shot", "novel-or-zero-shot", "nearest"),
        help="preset paper: how the buffer's own images are answered after the warm-up",
    )
    stage = parser.add_argument_group(
        "re-alignment",
        "of the image encoder on the first images (stage one of the paper): part of the preset "
        "paper, and with --realign done before any method that leaves the encoder as it is. "
        "Without --realign these are options of the method itself, where it has them",
    )
    stage.add_argument(
        "--realign",
        action="store_true",
        help="re-align the encoder before the method begins (default: no)",
    )
    stage.add_argument(
        "--warmup", type=int, metavar="W", help="images in the buffer (default: 1024)"
    )
    stage.add_argument("--epochs", type=int, metavar="E", help="0 skips it (default: 30)")
    stage.add_argument("--lr", type=float, help="learning rate (default: 0.01)")
    stage.add_argument(
        "--optimiser", choices=("sgd", "momentum", "adam", "adamw"), help="(default: sgd)"
    )
    stage.add_argument(
        "--realign-batch-size", type=int, metavar="N", help="images in a step (default: 128)"
    )
    stage.add_argument(
        "--normaliser",
        choices=("buffer", "minibatch"),
        help="whose mean weight a step's loss is divided by (default: buffer)",
    )
    stage.add_argument(
        "--realign-depth",
        type=int,
        metavar="N",
        help="re-align the last N blocks only: faster (default: all)",
    )
    stage.add_argument(
        "--early-stop",
        type=float,
        metavar="SHARE",
        help="end it when an epoch lowers the loss by less than this (default: no)",
    )
    add_reading(parser)
    scale = parser.add_argument_group("scale")
    scale.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="ray: read and encode on a pool of workers, with the same result (default: local)",
    )
    scale.add_argument("--workers", type=int, metavar="N", help="of the pool (default: all cores)")
    scale.add_argument(
        "--ray-address", metavar="ADDRESS", help="auto or ray://host:10001 (default: start one)"
    )
    scale.add_argument(
        "--sync-every",
        type=int,
        metavar="N",
        help="throughput mode of PACT: workers answer N batches each before prototypes are merged",
    )
    run = parser.add_argument_group("run")
    run.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    run.add_argument("--overwrite", action="store_true", help="replace what is in --out")
    run.add_argument("--print-config", action="store_true", help="print the settings and stop")
    run.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    from ttgcd.discovery.settings import Settings
    from ttgcd.wording import known_classes

    if args.earlier is not None:
        return _go_on(args)
    settings = Settings(
        **stream_settings(args),
        novel=args.novel,
        labels=args.labels,
        abstain=args.abstain,
        level=args.level,
        preset=args.preset,
        method=args.method,
        changes=_changes(args),
        realign=_stage_one(args) if args.realign else False,
    )
    if args.print_config:
        print(json.dumps(settings.describe(), indent=2))
        return 0
    if not args.quiet:
        print(known_classes(settings.names()), file=sys.stderr, flush=True)
    from ttgcd.discovery import run_discovery

    return _with_progress(
        args, lambda **given: run_discovery(source_of(args), settings, out=args.out, **given)
    )


def _go_on(args: argparse.Namespace) -> int:
    """These images on top of an earlier run: all that decides the answers is the run's."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = [name for name in _THE_RUNS if getattr(args, name) != parser.get_default(name)]
    if given:
        raise InputError(f"`{given[0]}=...` is the earlier run's and cannot be given again")
    from ttgcd.discovery.run import go_on

    return _with_progress(
        args,
        lambda **given: go_on(
            args.earlier,
            source_of(args),
            out=args.out,
            labels=args.labels,
            abstain=args.abstain,
            vocabulary=args.vocabulary,
            level=args.level,
            **given,
        ),
    )


def _with_progress(args: argparse.Namespace, discover: Any) -> int:
    from ttgcd.cli.progress import shown
    from ttgcd.discovery.engine import Engine
    from ttgcd.wording import as_options

    with shown(args.quiet) as progress:
        found = discover(
            resume=args.resume,
            overwrite=args.overwrite,
            engine=Engine(args.engine, args.workers, args.ray_address, args.sync_every),
            progress=progress,
            command=["ttgcd", *sys.argv[1:]],
        )
    print(as_options(found.text()))
    if found.out is not None and (largest := _largest_unnamed(found)) is not None:
        words = (str(found.out), "rename", largest.name, largest.good_name or "NAME")
        print(f"to name it: ttgcd edit {shlex.join(words)}")
    return 0


def _largest_unnamed(found: Discovery) -> Category | None:
    """What the summary shows first."""
    novel = [c for c in found.categories if c.kind == "novel" and c.count]
    return max(novel, key=lambda c: c.count, default=None)


def _changes(args: argparse.Namespace) -> dict[str, Any]:
    """Options of the method, by their own flags or by --set."""
    changes = {} if args.realign else _stage_one(args)
    if args.buffer_labels is not None:
        changes["buffer_labels"] = args.buffer_labels
    for text in args.set or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{text!r} is no option: give it as `set=option=value`")
        try:
            changes[name.strip()] = json.loads(value)
        except ValueError:  # a word needs no quotes
            changes[name.strip()] = value
    return changes


def _stage_one(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the re-alignment that were given."""
    return {name: getattr(args, name) for name in STAGE_ONE if getattr(args, name) is not None}
