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
TABS = ("wall", "images", "doubtful", "questions", "map", "figures", "history", "settings")
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


def test_a_name_that_is_being_typed_survives_images_that_arrive(visit, filled, server, icons):  # noqa: F811
    page = visit("#icons/wall")
    card = page.locator(".card.novel").nth(1)  # others may get in front of it; small ones may end
    number = card.get_attribute("data-category")
    card.locator(".name").click()
    page.keyboard.type("wonder")
    before = page.locator(".state b").inner_text()
    files = [("images", (f"late {name}", data, "image/png")) for name, data in icons[96:160]]
    httpx.post(f"{server.url}/v1/streams/icons/images", files=files, timeout=120).raise_for_status()
    page.wait_for_function(f"document.querySelector('.state b').textContent != {before!r}")
    page.wait_for_timeout(1500)  # the wall has been drawn again with new counts
    page.keyboard.type("ful thing")
    page.keyboard.press("Enter")
    page.locator(f'.card[data-category="{number}"] .name', has_text="wonderful thing").wait_for()


def test_a_card_dragged_on_another_is_merged_into_it_and_the_notice_takes_it_back(visit, filled):
    page = visit("#icons/wall")
    page.locator(".card.novel").nth(1).wait_for()
    before = page.locator(".card.novel").count()
    dragged = page.locator(".card.novel").nth(1).get_attribute("data-category")
    onto = page.locator(".card.novel").first
    page.locator(f'.card[data-category="{dragged}"]').drag_to(onto)
    page.locator(f'.card[data-category="{dragged}"]').wait_for(state="detached")
    assert page.locator(".card.novel").count() == before - 1
    page.get_by_role("button", name="Undo", exact=True).click()
    page.locator(f'.card[data-category="{dragged}"]').wait_for()


def tab_to(page: Any, wanted: str, most: int = 400) -> None:
    """Press Tab until the focus is on what a selector says."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_rename_merge_and_undo_without_a_mouse(visit, filled):
    page = visit("#icons/wall")
    page.locator(".card.novel").nth(2).wait_for()
    before = page.locator(".card.novel").count()
    number, other = (
        page.locator(".card.novel").nth(place).get_attribute("data-category") for place in (0, 2)
    )
    tab_to(page, f'.card[data-category="{number}"] .name')
    page.keyboard.press("Enter")
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    page.locator(f'.card[data-category="{number}"] .name', has_text="typed").wait_for()
    focused = "document.activeElement.closest('.card')?.dataset.category"
    assert page.evaluate(focused) == number, "the focus is back where it was"

    tab_to(page, f'.card[data-category="{number}"] input[type=checkbox]')
    page.keyboard.press("Space")
    tab_to(page, f'.card[data-category="{other}"] input[type=checkbox]')
    page.keyboard.press("Space")
    tab_to(page, ".actions .primary")
    page.keyboard.press("Enter")
    page.wait_for_function(f"document.querySelectorAll('.card.novel').length == {before - 1}")

    tab_to(page, '.tabs a[href$="/history"]')
    page.keyboard.press("Enter")
    page.locator(".history button").first.wait_for()
    tab_to(page, ".history button")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="redo merge").first.wait_for()
    page.goto(page.url.split("#")[0] + "#icons/wall")
    page.wait_for_function(f"document.querySelectorAll('.card.novel').length == {before}")


def test_settings_finish_a_stream_and_export_it(visit, filled, server):
    page = visit("#icons/settings")
    with page.expect_download() as saved:
        page.get_by_role("link", name="CSV").click()
    lines = Path(saved.value.path()).read_text(encoding="utf-8").splitlines()
    images = httpx.get(f"{server.url}/v1/streams/icons", timeout=30).json()["images"]
    assert len(lines) == images + 1
    button = page.get_by_role("button", name="Finish stream")
    if button.is_enabled():  # another test may have done so
        button.click()
    page.locator(".facts", has_text=f"finished at{images}").wait_for()


def test_a_phone_sends_what_its_camera_sees(visit, filled, icons):  # noqa: F811
    page = visit("#icons/images", width=390, height=800, has_touch=True, is_mobile=True)
    page.locator(".camera").wait_for()
    before = page.locator(".state b").inner_text()
    picture = {"name": "shot.png", "mimeType": "image/png", "buffer": icons[190][1]}
    page.locator("input[capture]").set_input_files([picture])
    page.wait_for_function(f"document.querySelector('.state b').textContent != {before!r}")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_every_view_fits_and_has_no_serious_accessibility_fault(visit, filled, server, width, dark):
    options = {"color_scheme": "dark" if dark else "light"}
    page = visit("#icons/wall", width=width, **options)
    page.locator(".card").first.wait_for()
    page.add_script_tag(path=str(AXE))
    serious = {}
    for tab in TABS:
        page.goto(f"{server.url}/#icons/{tab}")
        page.locator(f'.tabs a[aria-current=page]:has-text("{tab}")').wait_for()
        # What is being drawn may stand out for a moment; nothing may stay so.
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=5000)
        page.wait_for_timeout(600)  # cards fade in: half-seen text has too little contrast
        found = page.evaluate("axe.run().then(r => r.violations)")
        bad = [v["id"] for v in found if v["impact"] in ("serious", "critical")]
        serious |= {tab: bad} if bad else {}
    assert serious == {}
