"""Methods by name, and the table that documents them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttgcd.errors import InputError
from ttgcd.methods.registry import (
    DEFAULT_PRESET,
    METHODS,
    PRESETS,
    load_method,
    method_class,
)

DOCS = Path(__file__).parents[2] / "docs" / "methods.md"


def documented() -> dict[str, list[str]]:
    """The first table of the page: name -> objective, trains, answers, passes, defaults."""
    rows = {}
    for line in DOCS.read_text(encoding="utf-8").split("## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            rows[cells[0].strip("`")] = cells[1:]
    return rows


def test_the_page_lists_exactly_the_registered_methods() -> None:
    assert list(documented()) == list(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_the_page_says_what_the_class_says(name: str) -> None:
    cls = method_class(name)
    _, trains, answers, passes, _ = documented()[name]
    assert (trains, answers, int(passes)) == (cls.trains, cls.answers, cls.passes)


def test_a_class_may_be_named_by_its_place() -> None:
    assert load_method("ttgcd.methods.tent:Tent", lr=0.5).config()["lr"] == 0.5


@pytest.mark.parametrize(
    "name", ["tentt", "no.such.module:Tent", "ttgcd.methods.tent:Nobody", "ttgcd.errors:InputError"]
)
def test_what_is_not_a_method_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match="method"):
        load_method(name)


def test_scout_is_the_default_and_paper_the_literal_method() -> None:
    assert PRESETS[DEFAULT_PRESET].method == "scout"
    assert PRESETS["paper"] == ("pact", {})
