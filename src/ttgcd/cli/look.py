"""ttgcd look: open the report of a run, or serve it where there is no browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ttgcd.wording import listed

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

REPORT = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "out", nargs="?", default="ttgcd-out", help="the run's folder (default: ttgcd-out)"
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="serve it to this machine only, also when there is a browser (stop with Ctrl-C)",
    )
    parser.add_argument("--port", type=int, default=0, help="of the server (default: a free one)")


def run(args: argparse.Namespace) -> int:
    page = find_report(args.out)
    if not args.serve and _open(page):
        print(f"opened {page}")
        return 0
    server, path = make_server(page.parent, args.port)
    with server:
        print(f"http://127.0.0.1:{server.server_port}/{path}  (stop with Ctrl-C)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def find_report(out: str) -> Path:
    """The report of a run, by its folder or by itself."""
    from ttgcd.errors import InputError

    path = Path(out)
    page = path if path.name == REPORT else path / REPORT
    if page.is_file():
        return page.resolve()
    if not path.exists():
        raise InputError(f"no such folder: {out!r}; give the --out of a run{_runs_here()}")
    if (path / ".progress").exists():
        raise InputError(f"the run in {out!r} has not finished: go on with --resume")
    raise InputError(f"no run in {out!r}: give the --out of one{_runs_here()}")


def _runs_here() -> str:
    """The runs beside which the user stands: one of them was meant."""
    runs = sorted(page.parent.name for page in Path().glob(f"*/{REPORT}"))
    return f", such as {listed(runs, 5)}" if runs else ""


def make_server(out: Path, port: int) -> tuple[ThreadingHTTPServer, str]:
    """A server of a run's files and of its images for this machine alone, and the page's path.

    Requests that name another host are refused: a page from elsewhere could otherwise read the
    report by having its own name resolve to this machine.
    """
    import os
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from urllib.parse import quote

    from ttgcd.errors import InputError
    from ttgcd.streams.formats import EXTENSIONS, extension_of

    originals = _originals(out)
    root = Path(os.path.commonpath([out, originals or out]))

    class Handler(SimpleHTTPRequestHandler):
        def send_head(self):  # type: ignore[no-untyped-def]
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            if host not in ("127.0.0.1", "localhost"):
                self.send_error(403, "only for this machine")
                return None
            path = Path(self.translate_path(self.path)).resolve()
            image = extension_of(path.name) in EXTENSIONS
            if not path.is_relative_to(out) and not (
                image and originals is not None and path.is_relative_to(originals)
            ):
                self.send_error(404, "no such file")
                return None
            return super().send_head()

        def list_directory(self, path):  # type: ignore[no-untyped-def]
            self.send_error(404, "no such file")

        def log_message(self, format: str, *args: object) -> None:
            """A server for one person need not tell what it served."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(root)))
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot serve on port {port}: {error}; give another --port") from None
    return server, quote((out / REPORT).relative_to(root).as_posix())


def _originals(out: Path) -> Path | None:
    """The folder that the run read its images from, if it is still there."""
    import json

    try:
        record = json.loads((out / "run.json").read_text(encoding="utf-8"))
        folder = Path(record["input"]["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return folder.resolve() if folder.is_dir() else None


def _open(page: Path) -> bool:
    """Whether a browser took the page. A text browser would take the terminal: not that."""
    import os
    import sys
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")
    ):
        return False
    try:
        return webbrowser.open(page.as_uri())
    except webbrowser.Error:
        return False
