"""Runs the blocks of one page, as somebody would who follows it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.docs.blocks import PYTHON, ROOT, SHELL, Block, calls
from tests.docs.small import DISCOVER, made_small
from tests.service.live_server import LiveServer
from ttgcd.cli import main

#: the address at which the pages speak of a service
_SERVICE = re.compile(r"(localhost|127\.0\.0\.1):8000")


class Page:
    """The blocks of a page share a folder, Python's names, and a service if it starts one."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        # dataclasses look themselves up by the name of their module
        self.module = types.ModuleType("page")
        self.names = vars(self.module)
        self.names |= {
            "array": rng.integers(0, 256, (2, 40, 40, 3), np.uint8),
            "image": rng.integers(0, 256, (40, 40, 3), np.uint8),
            "predicted": rng.integers(0, 8, 50),
            "true": rng.integers(0, 8, 50),
        }
        self._service: LiveServer | None = None

    def run(self, block: Block) -> None:
        text = block.text
        if self._service is not None:
            text = _SERVICE.sub(f"127.0.0.1:{self._service.port}", text)
        if block.language in SHELL:
            for command in Block(block.page, block.line, block.language, text, None).commands():
                self._command(command)
        elif block.language in PYTHON and ">>>" not in text:
            # tests/test_readme.py runs examples with prompts and compares what they print
            code = compile(
                text.replace("workers=8", 'workers=1, model="mini"'), f"{block.page}", "exec"
            )
            exec(code, self.names)

    def close(self) -> None:
        if self._service is not None:
            self._service.stop()

    def _command(self, command: str) -> None:
        arguments = calls(command)
        if command.startswith("pip install"):
            installable(command)
        elif command.startswith("make "):
            dry_make(command)
        elif arguments is None:
            shell(command)
        elif arguments[0] == "serve":
            self._service = LiveServer(Path("served"), *arguments[1:]).start().ready()
        else:
            call(arguments)


def call(arguments: list[str]) -> None:
    """One command, in this process and made small."""
    assert main(made_small(arguments)) == 0, arguments


def shell(command: str) -> None:
    """Anything else, with ``ttgcd`` standing for this package."""
    small = " ".join(DISCOVER) if " discover " in command else ""
    functions = (
        f'ttgcd() {{ "{sys.executable}" -m ttgcd "$@" {small}; }}\n'
        f'python() {{ PYTHONPATH="{ROOT}:${{PYTHONPATH:-}}" "{sys.executable}" "$@"; }}\n'
        'curl() { command curl --silent --show-error --fail-with-body "$@"; }\n'
    )
    if "-m benchmarks.packs" in command and "--table" not in command:
        command = f"{command} --arms told,kmeans --only 'photos:[1-9]*' --seeds 0"
    if "training/evaluate.py" in command:
        command = f"{command} --corruptions 1 --model tiny-clip"
    done = subprocess.run(["bash", "-euc", functions + command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def installable(command: str) -> None:
    """What a page tells to install is this package with extras that it has."""
    for requirement in shlex.split(command)[2:]:
        name, _, extras = requirement.rstrip("]").partition("[")
        assert name in ("ttgcd", "."), command
        declared = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
        assert not set(filter(None, extras.split(","))) - set(declared), command


def dry_make(command: str) -> None:
    """The targets are there; what they run is other tests' matter."""
    words = ["make", "--dry-run", *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def write_edits(content: dict) -> None:
    """The edits of the report's page, about categories and images of the run in ``OUT``."""
    from ttgcd import load

    found = load("OUT")
    novel = [c.id for c in found.categories if c.kind == "novel" and c.count]
    novel.sort(key=lambda id: -found.categories[id].count)
    images: dict[int, list[str]] = {}
    for row in found.assignments():
        images.setdefault(row["category"], []).append(row["id"])
    numbers = {57: novel[0], 58: novel[1], 12: 0, 9: novel[2]}
    for edit in content["edits"]:
        for key in ("category", "into"):
            if key in edit:
                edit[key] = numbers[edit[key]]
        if "images" in edit:
            edit["images"] = [images[novel[0]].pop()]
    Path("OUT-edits.json").write_text(json.dumps(content), encoding="utf-8")


@contextlib.contextmanager
def opened_page() -> Iterator[Page]:
    page, before = Page(), os.getcwd()
    try:
        yield page
    finally:
        page.close()
        assert os.getcwd() == before
