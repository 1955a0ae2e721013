"""ttgcd discover: a folder of images and a list of names in, named and grouped images out."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from ttgcd.errors import InputError
from ttgcd.methods.registry import DEFAULT_PRESET, PRESETS

if TYPE_CHECKING:
    from ttgcd.discovery import Discovery
    from ttgcd.methods.answer import Category

#: What decides the answers of a run that goes on from an earlier one is the earlier one's.
_THE_RUNS = (
    *("known", "preset", "method", "set", "anchors", "template", "in_order", "warmup", "epochs"),
    *("lr", "realign_depth", "early_stop", "optimiser", "buffer_labels", "novel", "seed", "model"),
    *("batch_size", "precision", "word_embeddings", "logit_scale"),
)


def default_model() -> str:
    """The environment may name another, so that it need not be given every time."""
    return os.environ.get("TTGCD_MODEL") or "openai/clip-vit-base-patch16"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="+",
        help="folder, image files, list file (.txt), '-' for paths on standard input, .tar shards, "
        ".parquet, .npy of images, or .npy of embeddings (with --known give --anchors), here or at "
        "an address (s3://bucket/photos); several are read one after the other",
    )
    parser.add_argument(
        "--known",
        help="known class names: 'cat,dog' or @names.txt (one a line); without them everything is "
        "grouped, and groups may get names later",
    )
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
    parser.add_argument(
        "--model",
        default=default_model(),
        help="hub id, local folder, or 'mini' for the small embedded one (default: $TTGCD_MODEL, "
        "else openai/clip-vit-base-patch16)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    parser.add_argument("--anchors", help=".npy of text embeddings, one row a known class")
    parser.add_argument(
        "--word-embeddings",
        metavar="FILE",
        help="with --anchors: .npy of text embeddings, one row a word of the vocabulary",
    )
    parser.add_argument(
        "--logit-scale",
        type=float,
        metavar="X",
        help="with --anchors: inverse temperature of the model's logits (default: 100, CLIP's)",
    )
    parser.add_argument(
        "--template",
        action="append",
        metavar="TEXT",
        help="prompt template with {} for the name; repeat to average several "
        "(default: 'a photo of a {}.')",
    )
    parser.add_argument(
        "--vocabulary",
        metavar="@FILE|none",
        help="words that novel categories may be: they help to group and are suggested as names "
        "(default: 4,000 visible things)",
    )
    parser.add_argument(
        "--abstain",
        type=float,
        metavar="P",
        help="answers with a confidence below P go to a pile for review (review.csv)",
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
    method.add_argument("--warmup", type=int, metavar="W", help="images in the buffer")
    method.add_argument("--epochs", type=int, metavar="E", help="re-alignment epochs; 0 skips it")
    method.add_argument("--lr", type=float, help="re-alignment learning rate")
    method.add_argument(
        "--realign-depth",
        type=int,
        metavar="N",
        help="re-align the last N blocks only: faster (default: all)",
    )
    method.add_argument(
        "--early-stop",
        type=float,
        metavar="SHARE",
        help="end the re-alignment when an epoch lowers the loss by less than this (default: no)",
    )
    method.add_argument("--optimiser", choices=("sgd", "momentum", "adam", "adamw"))
    method.add_argument(
        "--buffer-labels",
        choices=("zero-shot", "novel-or-zero-shot", "nearest"),
        help="how the buffer's own images are answered after the warm-up",
    )
    stream = parser.add_argument_group("stream")
    stream.add_argument("--batch-size", type=int, default=128)
    stream.add_argument("--seed", type=int, default=0)
    stream.add_argument(
        "--in-order",
        action="store_true",
        help="read in the order given: for what is really a stream (default: an order drawn from "
        "the seed, so that the first images are like the rest)",
    )
    stream.add_argument("--threads", type=int, help="compute threads (default: all cores)")
    stream.add_argument(
        "--precision",
        choices=("fp32", "bf16", "int8"),
        default="fp32",
        help="int8 encodes two to three times as fast on a CPU, bf16 faster on a GPU, at a small "
        "loss of accuracy (default: fp32)",
    )
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
        known=args.known,
        novel=args.novel,
        model=args.model,
        device=args.device,
        templates=tuple(args.template) if args.template else ("a photo of a {}.",),
        anchors=args.anchors,
        word_embeddings=args.word_embeddings,
        logit_scale=args.logit_scale,
        vocabulary=args.vocabulary,
        labels=args.labels,
        abstain=args.abstain,
        preset=args.preset,
        method=args.method,
        changes=_changes(args),
        batch_size=args.batch_size,
        seed=args.seed,
        shuffle=not args.in_order,
        threads=args.threads,
        precision=args.precision,
    )
    if args.print_config:
        print(json.dumps(settings.describe(), indent=2))
        return 0
    if not args.quiet:
        print(known_classes(settings.names()), file=sys.stderr, flush=True)
    from ttgcd.discovery import run_discovery

    return _with_progress(
        args, lambda **given: run_discovery(_source(args), settings, out=args.out, **given)
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
            _source(args),
            out=args.out,
            labels=args.labels,
            abstain=args.abstain,
            vocabulary=args.vocabulary,
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


def _source(args: argparse.Namespace) -> Any:
    return args.source[0] if len(args.source) == 1 else args.source


def _changes(args: argparse.Namespace) -> dict[str, Any]:
    """Options of the method, by their own flags or by --set."""
    changes = {
        field: getattr(args, field)
        for field in (
            "warmup",
            "epochs",
            "lr",
            "realign_depth",
            "early_stop",
            "optimiser",
            "buffer_labels",
        )
        if getattr(args, field) is not None
    }
    for text in args.set or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{text!r} is no option: give it as `set=option=value`")
        try:
            changes[name.strip()] = json.loads(value)
        except ValueError:  # a word needs no quotes
            changes[name.strip()] = value
    return changes
