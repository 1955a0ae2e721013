"""The tutorial at its real size: its edits do what its text says, by the labels of the pictures."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

import ttgcd
from tests.docs.blocks import DOCS, blocks, calls
from ttgcd.cli import main

#: Commands of the tutorial up to its edits; the others are followed by ``test_commands.py``.
FOLLOWED = ("data", "discover", "edit")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after the section "Correct"."""
    here = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for block in blocks(DOCS / "tutorial.md"):
            if block.language == "python":
                exec(compile(block.text, "tutorial.md", "exec"), {})
            for command in block.commands() if block.language == "bash" else ():
                arguments = calls(command)
                if arguments and arguments[0] in FOLLOWED:
                    assert main([*arguments, *["--quiet"] * (arguments[0] == "discover")]) == 0
            if "edit found log" in block.text:
                return here
    raise AssertionError("the tutorial has no edits")


def test_what_is_named_holds_that_thing(folder: Path) -> None:
    with open(folder / "pictures-labels.csv", newline="") as file:
        label = {row["id"]: row["label"] for row in csv.DictReader(file)}
    rows = ttgcd.load(folder / "found").assignments()
    for thing in ("battery", "globe"):
        held = Counter(label[row["id"]] for row in rows if row["name"] == thing)
        assert held[thing] > held.total() / 2, (thing, held)
    globes = [row["name"] for row in rows if label[row["id"]] == "globe"]
    assert set(globes) == {"globe"}, "all globes were moved there"


def test_the_log_ends_with_the_undo_that_the_text_tells_of(folder: Path) -> None:
    found = ttgcd.load(folder / "found")
    assert [edit.op for edit in found.edits()] == ["rename", "rename", "move", "rename", "undo"]
    assert {"battery", "globe"} <= {category.name for category in found.categories}
    assert not found.unapplied()
