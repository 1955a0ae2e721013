"""The pages where nothing has a name: groups, and a click that gives one its name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")

from tests.service.conftest import icons  # noqa: F401
from tests.service.live_server import LiveServer
from ttgcd import discover
from ttgcd.service.client import Client

expect = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright (pip install playwright)"
).expect
COUNT = 60
#: Milliseconds for what takes a busy machine long.
LONG = 60_000


@pytest.fixture
def out(tmp_path: Path, icons: list) -> Path:  # noqa: F811
    pictures = tmp_path / "pile"
    pictures.mkdir()
    for number, (_, data) in enumerate(icons[:COUNT]):
        (pictures / f"{number:03d}.png").write_bytes(data)
    words = ["bird", "phone", "train", "house", "tool", "fruit"]
    discover(pictures, novel=3, model="mini", vocabulary=words, out=tmp_path / "run")
    return tmp_path / "run"


def test_the_report_shows_groups_and_one_gets_its_name(show: Callable[..., Any], out: Path) -> None:
    page = show(out / "report.html")
    expect(page.locator("h1")).to_have_text("60 images in 3 groups")
    headings = page.locator("h2:visible").all_inner_texts()
    assert headings[0].split() == ["Groups", "3"] and "Known classes" not in " ".join(headings)
    expect(page.locator("#map-canvas")).to_be_visible()
    expect(page.locator("#map-tools .toggle")).to_be_hidden()  # all points are of one kind
    expect(page.locator("#map-legend li")).to_have_count(3)
    expect(page.locator("#map-legend circle")).to_have_count(3)
    expect(page.locator("#share-chart")).to_be_hidden()
    text = page.locator("main").evaluate(
        "node => { node.querySelector('#run').remove(); return node.innerText.toLowerCase(); }"
    )
    assert "novel" not in text and "new categor" not in text
    card = page.locator("#category-1")
    expect(card.locator("h3")).to_contain_text("group 2")
    guess = (card.locator("h3 button").inner_text()).removesuffix("?")
    card.get_by_role("button", name="✓ yes").click()
    expect(card.locator("h3")).to_have_text(guess)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    if shutil.which("chromium") is None and shutil.which("chromium-browser") is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    found = LiveServer(tmp_path / "state").start().ready()
    yield found
    found.stop()


def test_a_stream_is_created_without_names_and_its_wall_shows_groups(
    browser: Any,
    server: LiveServer,
    icons: list,  # noqa: F811
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(server.url)
    page.get_by_label("Name", exact=True).fill("pile")
    page.get_by_label("Novel categories, or groups").fill("5")
    page.get_by_label("Images of the warm-up").fill("48")
    page.get_by_label("Images learned from at once").fill("16")
    page.get_by_role("button", name="Create").click()
    none_yet = page.get_by_text("No group yet: they appear when the warm-up is over.")
    expect(none_yet).to_be_visible(timeout=LONG)
    list(Client(server.url).send("pile", icons[:64]))
    expect(page.get_by_role("region", name="Groups").locator("li.card")).to_have_count(
        5, timeout=LONG
    )
    expect(page.locator(".state")).to_contain_text("64 images in 5 groups", timeout=LONG)
    expect(page.get_by_role("region", name="Known")).to_have_count(0)
    page.locator("li.card button.name").first.click()
    page.get_by_label("new name").fill("gadget")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="gadget", exact=True)).to_be_visible(timeout=LONG)
    page.goto(f"{server.url}/#pile/figures")
    expect(page.get_by_text("Images a second")).to_be_visible(timeout=LONG)
    assert "novel" not in page.locator("main").inner_text().lower()
    assert complaints == []
    context.close()
