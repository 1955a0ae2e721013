"""The command line: a table of commands, each in a file of its own, imported only when called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from ttgcd import __version__
from ttgcd.cli.parser import Parser
from ttgcd.errors import InputError
from ttgcd.wording import as_options

COMMANDS: dict[str, str] = {
    "discover": "name and group a stream of images",
    "assign": "assign further images to what a run found, without learning",
    "demo": "see it work on the embedded model and images",
    "look": "open the report of a run in a browser",
    "serve": "run a service with a live page: categories appear as images arrive",
    "send": "send the images of a folder to a service",
    "estimate": "count the categories of a stream that have no name yet",
    "edit": "rename, merge, split, move, hide what a run found; undo",
    "export": "write a run's result for other tools: folders, CSV, Label Studio, ...",
    "evaluate": "score a run against a file of labels",
    "data": "prepare and verify benchmark datasets",
    "corrupt": "make corrupted copies of images",
    "bench": "run the paper's experiments, print its tables, draw its figures",
    "doctor": "what works here, what is missing, how fast it will be",
    "completion": "let the shell complete commands and options",
}


def build_parser(*chosen: str) -> argparse.ArgumentParser:
    """The parser; only the chosen commands' modules are imported and get their arguments."""
    parser = Parser(
        prog="ttgcd",
        description="Recognise the classes you can name, discover the ones you cannot.",
        epilog="ttgcd COMMAND --help tells more about a command.",
    )
    parser.add_argument("--version", action="version", version=f"ttgcd {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary.capitalize() + ".")
        if name in chosen:
            import_module(f"ttgcd.cli.{name}").add_arguments(command)
    return parser


def full_parser() -> argparse.ArgumentParser:
    """The parser with the arguments of every command: for completion and documentation."""
    return build_parser(*COMMANDS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Exit codes: 0 done, 2 the user's input, 130/143 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        build_parser().print_help()
        return 0
    chosen = [word for word in arguments if word in COMMANDS][:1]
    args = build_parser(*chosen).parse_args(arguments)
    try:
        return import_module(f"ttgcd.cli.{args.command}").run(args)
    except InputError as error:
        print(f"ttgcd: error: {as_options(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output went away (e.g. `| head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # An interrupted run says by itself how it ended; the class is not imported here because
        # the engines are heavy.
        code = getattr(error, "exit_code", None)
        if code is None:
            raise
        print(f"ttgcd: {as_options(str(error))}", file=sys.stderr)
        return int(code)
    except KeyboardInterrupt:
        print("ttgcd: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
