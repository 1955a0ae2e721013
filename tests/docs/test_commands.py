"""Every command and code block of the documentation does what the page says: it runs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.benchmark_data import make_benchmark_data, make_clean_images, make_pickled_model
from tests.docs.blocks import DOCS, PYTHON, ROOT, SHELL, Block, blocks, calls, make_world
from tests.docs.runner import call, opened_page, write_edits
from ttgcd.cli import full_parser, look

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
#: Pages about data sets.
BENCHMARKS = ("results.md", "benchmarks.md", "datasets.md", "mini-model-card.md", "own-method.md")
BENCHMARKS += ("real-clip.md",)
#: All that is not run, and why: nothing else may be left out.
NOT_RUN = {
    ("docs/datasets.md", "ttgcd data prepare cifar10 "): "fetches 140 MB",
    ("docs/datasets.md", "apt-get install dataset-fashion-mnist"): "needs Debian's package",
    ("docs/inputs.md", "pip install s3fs"): "needs a bucket",
    ("docs/scale.md", "import ray.data"): "needs a bucket",
    ("docs/scale.md", "ray start "): "starts a cluster on several machines",
    ("docs/methods.md", "@dataclass"): "part of a file",
}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("benchmarks")
    make_benchmark_data(folder)
    return folder


def prepare(page: Path, data: Path) -> None:
    """What a page takes for granted, in the folder in which it is followed."""
    known = ["discover", "photos", "--known", "@names.txt"]
    if page.name == "metrics.md":
        call([*known, "--novel", "2", "--out", "found"])
    if page.name == "report.md":
        call([*known, "--novel", "4", "--out", "OUT"])
        shutil.copytree("OUT", "ttgcd-out")
        (edits,) = (block for block in blocks(page) if block.language == "json")
        write_edits(json.loads(edits.text))
    if page.name == "models.md":
        make_pickled_model(Path("folder"))
    if page.name == "scale.md":
        pytest.importorskip("ray")
        for site in ("north", "south"):
            Path(site).symlink_to("photos")
    if page.name == "service.md":
        pytest.importorskip("fastapi")
        for number, image in enumerate(sorted(Path("photos").rglob("*.jpg"))[:2]):
            shutil.copy(image, f"{'ab'[number]}.jpg")
    if page.name == "mini-model-card.md":
        Path("training").symlink_to(ROOT / "training")
    if page.name == "own-method.md":
        source = next(block for block in blocks(page) if "class Leaders" in block.text)
        Path("leaders.py").write_text(source.text, encoding="utf-8")
    if page.name == "benchmarks.md":
        Path("docs").mkdir()
    if page.name == "real-clip.md":  # one small pack, and the rows that the page shows
        call(["bench", "pack", "photos", "--model", "mini", "--out", "packs"])
        Path("results").mkdir()
        shutil.copy(ROOT / "results" / "packs.jsonl", "results")
    if page.name == "results.md":  # its rows were measured at the selected arms
        Path("results").mkdir()
        shutil.copy(ROOT / "results" / "selected.json", "results")
    if page.name == "datasets.md":  # it makes sets anew: not among those of the other pages
        make_clean_images(Path())
        for kind in ("cifar10", "CIFAR-10-C"):
            shutil.copytree(data / "DATA" / kind, Path("DATA") / kind)
    elif page.name in BENCHMARKS:
        for path in data.iterdir():
            Path(path.name).symlink_to(path)


@pytest.mark.parametrize("page", PAGES, ids=map(name, PAGES))
def test_every_block_of_the_page_runs(
    page: Path, world: Path, request, tmp_path: Path, monkeypatch, capsys
) -> None:
    here = tmp_path / "here"
    shutil.copytree(world, here)
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.setenv("TTGCD_MODEL", "mini")
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(look, "_open", lambda page: True)
    monkeypatch.setattr("ttgcd.discovery.machine._SECONDS_OF_MEASURING", 0.05)
    prepare(page, request.getfixturevalue("data") if page.name in BENCHMARKS else world)
    with opened_page() as followed:
        monkeypatch.setitem(sys.modules, "page", followed.module)
        for block in blocks(page):
            if block.not_run is None:
                followed.run(block)


def test_what_is_not_run_is_little_and_has_a_reason() -> None:
    left_out = [block for page in PAGES for block in blocks(page) if block.not_run]
    for block in left_out:
        assert any(
            block.page == page and block.text.startswith(start) and block.not_run == reason
            for (page, start), reason in NOT_RUN.items()
        ), f"{block.page}:{block.line} is not run"
    assert len(left_out) == len(NOT_RUN)


def test_the_part_of_a_file_stands_in_it() -> None:
    """Signatures, comments and types aside: a page shows less of them."""
    (block,) = (b for b in blocks(DOCS / "methods.md") if b.not_run)
    file = (ROOT / "src" / "ttgcd" / "methods" / "tent.py").read_text(encoding="utf-8")
    for line in block.text.splitlines():
        assert line.split("(")[0].strip() in file
        assert line in file or line.lstrip().startswith("def ")


@pytest.mark.parametrize("page", PAGES, ids=map(name, PAGES))
def test_every_command_parses_also_where_it_is_not_run(page: Path) -> None:
    parser = full_parser()
    for block in blocks(page):
        if block.language in SHELL:
            for command in block.commands():
                if (arguments := calls(command)) is not None:
                    parser.parse_args(arguments)
                elif command.startswith("ray start "):
                    ray = pytest.importorskip("ray.scripts.scripts")
                    ray.start.make_context("start", shlex.split(command)[2:])
        elif block.language in PYTHON and ">>>" not in block.text:
            compile(block.text, f"{block.page}:{block.line}", "exec")


def options_of(words: list[str]) -> set[str]:
    """The options of a command, as its parser has them."""
    parser = full_parser()
    for word in words:
        choices = [a.choices for a in parser._actions if a.choices and word in a.choices]
        if not choices:
            break
        parser = choices[0][word]
    return {option for action in parser._actions for option in action.option_strings}


def of_language(*languages: str) -> list[Block]:
    return [b for page in PAGES for b in blocks(page) if b.language in languages]


def test_blocks_of_other_languages_are_what_they_say() -> None:
    other = of_language("yaml", "json", "toml", "text")
    assert len(other) >= 4
    known = {*SHELL, *PYTHON, "yaml", "json", "toml", "text"}
    assert not [b for page in PAGES for b in blocks(page) if b.language not in known]
    for block in other:
        if block.language == "yaml":
            yaml = pytest.importorskip("yaml")
            words = yaml.safe_load(block.text)["spec"]["entrypoint"].split()
            full_parser().parse_args(words[1:])
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            assert re.fullmatch(r'\[[\w."-]+\]\n(\w+ = "[^"]+"\n?)+', block.text)
        elif block.text.startswith("ttgcd "):
            words = block.text.split()[1:]
            assert set(re.findall(r"--[\w-]+", block.text)) <= options_of(words), block.text
