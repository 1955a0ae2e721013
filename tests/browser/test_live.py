"""The live page in a real browser: upload, warm-up, rename, merge, undo, search, map, phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")

import httpx

from tests.service.conftest import STREAM, icons  # noqa: F401
from tests.service.live_server import LiveServer

SCRIPT = "<img src=x onerror=window.hit=1>"
AXE = Path(__file__).parent / "vendor" / "axe.min.js"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    if shutil.which("chromium") is None and shutil.which("chromium-browser") is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    found = LiveServer(tmp_path_factory.mktemp("live") / "state").start().ready()
    yield found
    found.stop()


@pytest.fixture
def visit(browser: Any, server: LiveServer) -> Iterator[Any]:
    """Open the page; whatever it complains about fails the test."""
    complaints: list[str] = []
    contexts = []

    def opened(path: str = "", width: int = 1280, height: int = 800, **options: Any) -> Any:
        # The policy of the page forbids foreign scripts; the accessibility check is one.
        context = browser.new_context(
            viewport={"width": width, "height": height}, bypass_csp=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda said: (
                complaints.append(said.text)
                if said.type == "error" and "status of" not in said.text
                else None
            ),
        )
        page.goto(f"{server.url}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def filled(server: LiveServer, icons: list[tuple[str, bytes]]) -> None:  # noqa: F811
    """The stream of these tests, whichever of them runs first."""
    names = {s["name"] for s in httpx.get(f"{server.url}/v1/streams", timeout=30).json()["streams"]}
    if "icons" in names:
        return
    httpx.post(f"{server.url}/v1/streams", json=STREAM, timeout=60).raise_for_status()
    files = [("images", (name, data, "image/png")) for name, data in icons[:96]]
    url = f"{server.url}/v1/streams/icons/images"
    httpx.post(url, files=files, timeout=120).raise_for_status()


@pytest.mark.xfail(
    strict=False,
    reason="now and then a new name does not reach the wall: a race to be found",
)
def test_from_the_first_visit_to_a_corrected_wall(visit, server, icons):  # noqa: F811
    page = visit()
    page.get_by_label("Name").fill("icons")
    page.get_by_label("Known classes").fill(", ".join([*STREAM["known"], SCRIPT]))
    page.get_by_label("Novel categories").fill("8")
    page.get_by_label("Images of the warm-up").fill("48")
    page.get_by_label("Images learned from at once").fill("16")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("No novel category yet").wait_for()

    second = visit("#icons/wall")
    files = [
        {"name": f"{SCRIPT}{n}.png", "mimeType": "image/png", "buffer": data}
        for n, (_, data) in enumerate(icons[:96])
    ]
    page.locator("input[type=file]").first.set_input_files(files)
    page.locator(".card.novel").nth(1).wait_for(timeout=60_000)
    second.locator(".card.novel").nth(1).wait_for(timeout=60_000)

    card = page.locator(".card.novel").first
    number = card.get_attribute("data-category")
    card.locator(".name").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("gadget & co")
    page.keyboard.press("Enter")
    renamed = f'.card[data-category="{number}"] .name'
    page.locator(renamed, has_text="gadget & co").wait_for()
    second.locator(renamed, has_text="gadget & co").wait_for()

    before = page.locator(".card.novel").count()
    for place in (0, 1):
        page.locator(".card.novel input[type=checkbox]").nth(place).check()
    page.get_by_role("button", name="Merge").click()
    page.wait_for_function(f"document.querySelectorAll('.card.novel').length < {before}")

    page.get_by_role("link", name="history").click()
    page.get_by_role("button", name="undo merge").click()
    page.get_by_role("button", name="redo merge").wait_for()
    page.get_by_role("link", name="wall").click()
    page.wait_for_function(f"document.querySelectorAll('.card.novel').length >= {before}")

    page.reload()
    page.locator(renamed, has_text="gadget & co").wait_for()
    assert page.evaluate("window.hit") is None, "a script in a file or class name does nothing"


def test_search_map_and_galleries_pick_the_same_images(visit, filled):
    page = visit("#icons/wall")
    page.get_by_role("searchbox").fill("airplane")
    page.keyboard.press("Enter")
    page.locator(".cell").nth(3).wait_for()
    assert page.get_by_text("images for airplane").count() == 1

    page.get_by_role("link", name="map").click()
    page.get_by_text("draw around some").wait_for(timeout=60_000)
    box = page.locator("canvas.map").bounding_box()
    page.mouse.move(box["x"] + 12, box["y"] + 12)  # the corner itself is rounded off
    page.mouse.down()
    for x, y in ((0.99, 0.01), (0.99, 0.99), (0.01, 0.99)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
    page.mouse.up()
    page.locator(".cell.picked").nth(5).wait_for()
    assert page.get_by_text("picked").count() >= 1


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_every_view_fits_and_has_no_serious_accessibility_fault(visit, filled, server, width, dark):
    options = {"color_scheme": "dark" if dark else "light"}
    page = visit("#icons/wall", width=width, **options)
    page.locator(".card").first.wait_for()
    for tab in ("wall", "images", "questions", "figures", "history"):
        page.goto(f"{server.url}/#icons/{tab}")
        page.locator(f'.tabs a[aria-current=page]:has-text("{tab}")').wait_for()
        # What is being drawn may stand out for a moment; nothing may stay so.
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=5000)
    if not AXE.exists():
        pytest.skip("needs axe-core")
    page.goto(f"{server.url}/#icons/wall")
    page.locator(".card").first.wait_for()
    page.wait_for_timeout(600)  # cards fade in: half-seen text has too little contrast
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("axe.run().then(r => r.violations)")
    serious = [v["id"] for v in found if v["impact"] in ("serious", "critical")]
    assert serious == []
