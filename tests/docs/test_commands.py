"""Every command and code block of the documentation does what the page says: it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tests.docs.blocks import DOCS, PYTHON, ROOT, SHELL, Block, blocks, calls, make_world
from ttgcd.cli import full_parser, look, main
from ttgcd.discovery.settings import Settings

#: Pages of measured results: their commands need data sets and hours, and must at least parse.
RESULTS = ("results.md", "benchmarks.md", "report.md", "architecture.md", "mini-model-card.md")
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUN = [page for page in PAGES if page.name not in RESULTS]
#: One epoch on a buffer of 80: what is held here is that the commands work, not how well.
EPOCHS = ["--epochs", "1"] if hasattr(Settings(known=["a"]).make_method(), "epochs") else []
SMALL = {
    "discover": [*EPOCHS, "--warmup", "80", "--quiet"],
    "estimate": ["--warmup", "80", "--quiet"],
}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    return folder


def call(arguments: list[str]) -> None:
    """One command, in this process and made small."""
    extra = ["--quiet"] if "--from" in arguments else SMALL.get(arguments[0], [])
    given = [o for n, o in enumerate(extra) if o not in arguments and extra[n - 1] not in arguments]
    assert main([*arguments, *given]) == 0, arguments
    if arguments[:3] == ["data", "prepare", "iconshift"]:
        for number, path in enumerate(sorted(Path(arguments[3]).rglob("*.png"))):
            if number % 3:
                path.unlink()


def shell(command: str) -> None:
    """Anything else, with ``ttgcd`` standing for this package."""
    small = " ".join(SMALL["discover"]) if " discover " in command else ""
    function = f'ttgcd() {{ "{sys.executable}" -m ttgcd "$@" {small}; }}\n'
    done = subprocess.run(["bash", "-euc", function + command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"


def python(block: Block, names: dict) -> None:
    if ">>>" in block.text:
        return  # tests/test_readme.py runs these and compares what they print
    code = compile(block.text, f"{block.page}:{block.line}", "exec")
    exec(code, names)


@pytest.mark.parametrize("page", RUN, ids=map(name, RUN))
def test_every_block_of_the_page_runs(
    page: Path, world: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    here = tmp_path / "here"
    shutil.copytree(world, here)
    monkeypatch.chdir(here)
    monkeypatch.setenv("TTGCD_MODEL", "mini")
    monkeypatch.setattr(look, "_open", lambda page: True)
    monkeypatch.setattr("ttgcd.discovery.machine._SECONDS_OF_MEASURING", 0.05)
    rng = np.random.default_rng(0)
    module = types.ModuleType("page")  # dataclasses look themselves up by the name of their module
    monkeypatch.setitem(sys.modules, "page", module)
    names = vars(module)
    names |= {
        "array": rng.integers(0, 256, (2, 40, 40, 3), np.uint8),
        "image": rng.integers(0, 256, (40, 40, 3), np.uint8),
        "predicted": rng.integers(0, 8, 50),
        "true": rng.integers(0, 8, 50),
    }
    todo = [block for block in blocks(page) if block.not_run is None]
    if page.name == "metrics.md":  # it speaks of a run that is there already
        call(["discover", "photos", "--known", "@names.txt", "--novel", "2", "--out", "found"])
    for block in todo:
        if block.language in SHELL:
            for command in block.commands():
                arguments = calls(command)
                shell(command) if arguments is None else call(arguments)
        elif block.language in PYTHON:
            python(block, names)
    assert os.getcwd() == str(here)


@pytest.mark.parametrize("page", PAGES, ids=map(name, PAGES))
def test_every_command_parses_also_where_it_is_not_run(page: Path) -> None:
    parser = full_parser()
    for block in blocks(page):
        if block.language in SHELL:
            for command in block.commands():
                if (arguments := calls(command)) is not None:
                    parser.parse_args(arguments)
        elif block.language in PYTHON and ">>>" not in block.text:
            compile(block.text, f"{block.page}:{block.line}", "exec")
