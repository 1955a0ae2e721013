"""ttgcd serve: an HTTP service and a live page."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ttgcd.cli.stream_options import default_model

if TYPE_CHECKING:
    from ttgcd.service.house import House

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        type=Path,
        default=Path("ttgcd-state"),
        help="folder for streams and their images (default: ttgcd-state)",
    )
    parser.add_argument(
        "--model",
        default=default_model(),
        help="hub id, local folder, or 'mini' for the small embedded one (default: $TTGCD_MODEL, "
        "else openai/clip-vit-base-patch16)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="default: 8000; 0 takes a free one")
    parser.add_argument(
        "--token",
        default=os.environ.get("TTGCD_TOKEN"),
        help="who asks must give it (default: $TTGCD_TOKEN); needed for any --host but loopback",
    )
    parser.add_argument("--watch", type=Path, metavar="DIR", help="take the files that appear here")
    parser.add_argument(
        "--known",
        help="known class names of the watched stream: 'cat,dog' or @names.txt; without them "
        "everything is grouped",
    )
    parser.add_argument(
        "--novel", default="auto", help="its number of novel categories (default: auto)"
    )
    parser.add_argument(
        "--play",
        action="store_true",
        help="create a stream 'icons' and let the embedded IconShift images arrive in it",
    )
    parser.add_argument("--on-birth", metavar="URL", help="POST here when a category is born")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST",
        help="host besides this machine that --on-birth may call",
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument("--most-streams", type=int, default=16, help="default: 16")
    limits.add_argument("--queue", type=int, default=4096, help="images that may wait (4096)")
    limits.add_argument("--rate", type=float, default=0.0, help="images a second of a client")
    limits.add_argument("--image-mb", type=float, default=20.0, help="of one image (20)")
    limits.add_argument("--request-mb", type=float, default=64.0, help="of one request (64)")


def run(args: argparse.Namespace) -> int:
    from ttgcd.errors import InputError

    if args.host not in LOOPBACK and not args.token:
        raise InputError(
            f"`host={args.host}` can be reached by others: give a `token=...`, or stay on 127.0.0.1"
        )
    if args.watch is not None and not args.watch.is_dir():
        raise InputError("`watch=...` needs a folder that exists")
    # Threads of the encoder that spin while they wait for each other take the cores from those that
    # read requests. Read when torch is loaded: before the next lines.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import uvicorn

        from ttgcd.service.app import ServiceSettings, make_app
    except ImportError as error:
        raise InputError(
            f"the service needs more packages ({error.name}): pip install 'ttgcd[serve]'"
        ) from None
    from ttgcd.service.limits import Limits

    settings = ServiceSettings(
        state=args.state,
        model=args.model,
        device=args.device,
        token=args.token or None,
        limits=Limits(
            request_bytes=int(args.request_mb * 2**20),
            image_bytes=int(args.image_mb * 2**20),
            queue=args.queue,
            rate=args.rate,
            streams=args.most_streams,
        ),
        on_birth=args.on_birth,
        allow_hosts=args.allow_host,
        watch=args.watch,
    )

    def prepare(house: House) -> None:
        if args.watch is not None:
            _watched(house, args.known, args.novel)
        if args.play:
            from ttgcd.service.play import play

            play(house)

    app = make_app(settings, prepare)
    config = uvicorn.Config(
        app,
        host=args.host,
        port=args.port,
        log_level="warning",
        timeout_graceful_shutdown=5,
        server_header=False,
    )
    print(f"http://{args.host}:{args.port}/  (stop with Ctrl-C)", flush=True)
    uvicorn.Server(config).run()
    return 0


def _watched(house: House, known: str | None, novel: str) -> None:
    from ttgcd.streams.labels import read_names

    if "watched" not in {stream.name for stream in house.streams()}:
        names = [] if known is None else list(read_names(known))
        settings = {"known": names, "novel": novel}
        house.create("watched", settings)
