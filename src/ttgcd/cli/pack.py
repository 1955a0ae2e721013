"""ttgcd bench pack: features, labels and texts of a labelled set by a model, in one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ttgcd.wording import counted

if TYPE_CHECKING:
    from ttgcd.bench.make_pack import Given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        help="a folder with a folder for each class; any images with --labels; hf:NAME or "
        "hf:FOLDER, a data set of Hugging Face; or a benchmark (iconshift, cifar10-c, ...), which "
        "makes a pack of each stream",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the packs")
    parser.add_argument("--name", help="of the pack (default: that of the source)")
    parser.add_argument("--model", default="mini", help="hub id, folder or 'mini' (default)")
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--template",
        action="append",
        metavar="TEXT",
        help="prompt with {} for the name; repeat to average (default: 'a photo of a {}.')",
    )
    parser.add_argument(
        "--vocabulary",
        metavar="@FILE|none",
        help="words to keep beside the packs (default: the shipped ones); those that give a class "
        "away are left out when a task is drawn",
    )
    parser.add_argument("--labels", metavar="FILE", help="CSV id,label: the images' classes")
    parser.add_argument("--data", type=Path, help="benchmarks: folder that holds the data sets")
    parser.add_argument("--streams", help="benchmarks: only these, comma-separated")
    parser.add_argument("--split", default="test", help="hf: which split (default: test)")
    parser.add_argument("--image-column", default="image", help="hf: default: image")
    parser.add_argument("--label-column", default="label", help="hf: default: label")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N images of each set")
    parser.add_argument("--overwrite", action="store_true", help="make packs again that are there")


def run(args: argparse.Namespace) -> int:
    from itertools import chain

    from ttgcd.bench.make_pack import labelled_sets, make_pack, make_words, short_name
    from ttgcd.bench.packs import write_pack, write_words
    from ttgcd.cli.progress import Progress
    from ttgcd.errors import InputError
    from ttgcd.vlm import load_vlm
    from ttgcd.vlm.anchors import TEMPLATES, check_templates

    if args.limit is not None and args.limit < 1:
        raise InputError(f"--limit must be at least 1, got {args.limit}")
    templates, words = check_templates(args.template or TEMPLATES), _words(args.vocabulary)
    sets = labelled_sets(_given(args))
    first = next(sets)  # what cannot be used is said before a model is loaded
    vlm = load_vlm(args.model, args.device)
    if words:
        made = make_words(vlm, words, templates)
        path = write_words(args.out, short_name(vlm.name), made)
        print(f"{path}: {counted(len(words), 'word')}")
    show = Progress()
    try:
        for one in chain([first], sets):
            if (args.out / f"{one.name}.npz").exists() and not args.overwrite:
                show.say(f"{args.out / one.name}.npz is there already (--overwrite makes it again)")
                continue
            pack, unread = make_pack(vlm, one.few(args.limit), templates, show)
            path = write_pack(args.out, pack)
            if unread:
                show.say(f"{one.name}: {counted(unread, 'image')} could not be read, left out")
            classes = counted(len(pack.present()), "class", "classes")
            print(f"{path}: {counted(len(pack.labels), 'image')}, {classes}, {pack.model}")
    finally:
        show.close()
    print(f"to measure them: python -m benchmarks.packs {args.out}", file=sys.stderr)
    return 0


def _words(vocabulary: str | None) -> tuple[str, ...]:
    from ttgcd.data.words import vocabulary as shipped_words
    from ttgcd.streams.labels import read_names

    if vocabulary == "none":
        return ()
    return shipped_words() if vocabulary is None else read_names(vocabulary)


def _given(args: argparse.Namespace) -> Given:
    from ttgcd.bench.make_pack import Given

    streams = None
    if args.streams is not None:
        streams = tuple(part.strip() for part in args.streams.split(",") if part.strip())
    return Given(
        source=args.source,
        name=args.name,
        labels=args.labels,
        data=args.data,
        streams=streams,
        split=args.split,
        image_column=args.image_column,
        label_column=args.label_column,
    )
