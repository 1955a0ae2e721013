"""Coarser and finer groups in the report, in the hands of a user."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import RealRun
from ttgcd.cli import main

Show = Callable[..., Any]


@pytest.fixture(scope="module")
def out(real_run: RealRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two known classes and too few new categories for ten others: some are several things."""
    out = tmp_path_factory.mktemp("levels") / "found"
    options = ["--known", ",".join(real_run.known[:2]), "--novel", "3", "--model", "mini"]
    options += ["--level", "fine", "--quiet", "--out", str(out)]
    assert main(["discover", str(real_run.icons), *options]) == 0
    return out


def said(out: Path) -> dict[str, Any]:
    return json.loads((out / "categories.json").read_text("utf-8"))["levels"]


def test_the_level_asked_for_comes_first_and_a_group_leads_to_its_images(out: Path, show: Show):
    levels = said(out)
    assert levels["fine"]["count"] > levels["found"] == 5
    page = show(out / "report.html")
    order = page.locator("main > section:visible").evaluate_all("nodes => nodes.map(n => n.id)")
    assert order.index("levels") < order.index("novel")
    heading = page.locator("#levels h2 span").inner_text()
    assert f"{levels['found']} found" in heading and f"{levels['fine']['count']} fine" in heading
    cards = page.locator("#levels .card")
    groups = {g["name"]: g for g in levels["fine"]["groups"]}
    assert cards.count() == min(12, len(groups))
    title = cards.first.locator(".open").inner_text()
    cards.first.locator(".open").click()
    assert page.locator("#grid .thumb").count() == groups[title]["count"]
    assert page.locator("#gallery-title").inner_text() == title
    assert page.locator("#rename").is_hidden()  # a group is no category: it is not renamed


def test_a_press_shows_the_coarse_groups_and_an_edit_here_reaches_them(out: Path, show: Show):
    levels = said(out)
    page = show(out / "report.html")
    page.locator("#levels .toggle button", has_text="Coarse").click()
    (group, *_) = sorted(levels["coarse"]["groups"], key=lambda g: -g["count"])
    card = page.locator("#levels .card").first
    assert card.locator(".count strong").inner_text() == f"{group['count']:,}"
    members = card.locator(".members .link")
    assert members.count() == len(group["categories"]) > 1
    members.first.click()
    novel = [c for c in group["categories"] if c >= 2]
    page.keyboard.press("Escape")
    page.locator(f"#category-{novel[0]}").get_by_text("hide", exact=True).click()
    left = page.locator("#levels .card").first.locator(".members .link").count()
    assert left == len(group["categories"]) - 1


def test_the_map_keeps_its_own_buttons(out: Path, show: Show):
    page = show(out / "report.html")
    page.locator("#map-tools button", has_text="Category").click()
    pressed = page.locator("#levels .toggle button[aria-pressed=true]")
    assert pressed.count() == 1 and pressed.inner_text() == "Fine"


def test_levels_fit_a_phone(out: Path, show: Show):
    page = show(out / "report.html", width=360, height=740)
    page.locator("#levels .toggle button", has_text="Coarse").click()
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
