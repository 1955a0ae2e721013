"""Options that say what a stream holds and how it is read, equal for all commands that take one."""

from __future__ import annotations

import argparse
import os
from typing import Any


def default_model() -> str:
    """The environment may name another, so that it need not be given every time."""
    return os.environ.get("TTGCD_MODEL") or "openai/clip-vit-base-patch16"


def add_known(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--known",
        help="known class names: 'cat,dog' or @names.txt (one a line); without them everything is "
        "grouped, and groups may get names later",
    )


def add_model_and_texts(parser: argparse.ArgumentParser) -> None:
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


def add_reading(parser: argparse.ArgumentParser) -> None:
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


def stream_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What the options above say, as arguments of ``Settings``."""
    return {
        "known": args.known,
        "model": args.model,
        "device": args.device,
        "templates": tuple(args.template) if args.template else ("a photo of a {}.",),
        "anchors": args.anchors,
        "word_embeddings": args.word_embeddings,
        "logit_scale": args.logit_scale,
        "vocabulary": args.vocabulary,
        "batch_size": args.batch_size,
        "seed": args.seed,
        "shuffle": not args.in_order,
        "threads": args.threads,
        "precision": args.precision,
    }


def source_of(args: argparse.Namespace) -> Any:
    """What ``open_source`` takes: one source, or several."""
    return args.source[0] if len(args.source) == 1 else args.source
