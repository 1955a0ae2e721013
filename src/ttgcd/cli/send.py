"""ttgcd send: the images of a folder to a service, in order, once each."""

from __future__ import annotations

import argparse
import os
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="folder of images")
    parser.add_argument("url", help="of the service, e.g. http://127.0.0.1:8000")
    parser.add_argument("--stream", required=True, help="name of the stream")
    parser.add_argument(
        "--known", help="create the stream with these names: 'cat,dog' or @names.txt"
    )
    parser.add_argument(
        "--create",
        action="store_true",
        help="create the stream if there is none; without --known everything in it is grouped",
    )
    parser.add_argument("--novel", default="auto", help="its number of novel categories, or auto")
    parser.add_argument(
        "--token", default=os.environ.get("TTGCD_TOKEN"), help="default: $TTGCD_TOKEN"
    )
    parser.add_argument("--at-once", type=int, default=64, help="images a request (default: 64)")


def run(args: argparse.Namespace) -> int:
    from ttgcd.errors import InputError
    from ttgcd.streams.labels import read_names
    from ttgcd.streams.open import open_source

    try:
        from ttgcd.service.client import Client, ServiceProblem
    except ImportError as error:
        raise InputError(
            f"sending needs more packages ({error.name}): pip install 'ttgcd[serve]'"
        ) from None
    source = open_source(args.source)
    sent = refused = 0
    with Client(args.url, args.token) as client:
        if args.create or args.known is not None:
            novel = args.novel if args.novel == "auto" else int(args.novel)
            known = () if args.known is None else read_names(args.known)
            try:
                client.create(args.stream, known, novel=novel)
            except ServiceProblem as problem:
                if problem.status != 409:
                    raise
        images = ((source.id(i), bytes(source.read(i))) for i in range(len(source)))
        for result in client.send(args.stream, images, at_once=args.at_once):
            if result.error is not None:
                refused += 1
                print(f"refused: {result.id}: {result.error}", file=sys.stderr)
            else:
                sent += 1
                if result.answer is not None:
                    print(f"{result.id}\t{result.answer.category}\t{result.answer.name}")
    print(f"{sent} sent, {refused} refused", file=sys.stderr)
    return 0
