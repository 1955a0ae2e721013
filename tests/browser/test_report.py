"""The report in the hands of a user: look, search, sort, correct, download."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.runs import Page, write_pictures, write_run
from ttgcd.cli import main
from ttgcd.report import write_report

EVIL = '{}</script><script>document.title="PWNED"</script><img src=x onerror="document.title=1">'
COUNT = 90
expect = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright (pip install playwright)"
).expect
Show = Callable[..., Any]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """90 images in three known classes and two new categories, one of them with 30 images."""
    category = np.array([*range(4)] * 15 + [4] * 30)
    ids = [f"day {i % 3}/photo #{i:03d}.png" for i in range(COUNT)]
    images = write_pictures(tmp_path / "my photos", ids)
    rng = np.random.default_rng(0)
    score = rng.uniform(0.3, 0.9, COUNT)
    score[60] = 1.0  # the seed of the last category
    run = write_run(
        tmp_path / "run",
        category,
        ["cat", "dog", "bird"],
        ids=ids,
        score=score,
        novelty=rng.uniform(-0.2, 0.2, COUNT),
        suggested=["soccer ball", "moon"],
        input={"kind": "images", "source": str(images), "folder": str(images)},
    )
    write_report(run)
    return run


def grid(page: Any) -> list[str]:
    return page.locator("#grid .thumb").evaluate_all("nodes => nodes.map(n => n.ariaLabel)")


def open_category(page: Any, number: int) -> None:
    page.locator(f"#category-{number} .open").click()


def test_a_card_leads_to_all_its_images_and_to_the_original(out: Path, show: Show):
    page = show(out / "report.html")
    expect(page.locator("#category-4 h3")).to_have_text("soccer ball? novel 2")
    open_category(page, 4)
    assert len(grid(page)) == 30
    page.locator("#grid .thumb").nth(1).click()
    picture = page.locator("#stage img")
    picture.wait_for()
    assert picture.evaluate("i => i.naturalWidth") == 32  # the file itself, not its thumbnail
    name = page.locator("#picture-name").inner_text()
    address = page.locator("#original").evaluate("a => decodeURIComponent(a.href)")
    assert address.endswith(f"my photos/{name}")
    page.keyboard.press("ArrowRight")
    assert page.locator("#picture-name").inner_text() == grid(page)[2]
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_pictures_are_drawn_in_the_grid(out: Path, show: Show):
    page = show(out / "report.html")
    open_category(page, 4)
    first = page.locator("#grid .thumb").first
    expect(first).to_have_class(re.compile("sheet-"))
    assert "data:image/jpeg" in first.evaluate("n => getComputedStyle(n).backgroundImage")


def test_the_gallery_sorts_by_score_and_by_doubt_and_the_seed_is_never_first(out: Path, show: Show):
    page, rows = show(out / "report.html"), Page.of(out).data["rows"]
    score, doubt = (dict(zip(rows["id"], rows[key])) for key in ("score", "doubt"))
    open_category(page, 4)
    seed = "day 0/photo #060.png"
    typical = grid(page)
    assert typical[0] != seed
    fits = [score[name] for name in typical if name != seed]
    assert fits == sorted(fits, reverse=True)
    page.select_option("#order", "atypical")
    fits = [score[name] for name in grid(page) if name != seed]
    assert fits == sorted(fits) and grid(page)[0] != seed
    page.select_option("#order", "doubt")
    doubts = [doubt[name] for name in grid(page)]
    assert doubts == sorted(doubts, reverse=True)
    page.select_option("#order", "name")
    assert grid(page) == sorted(typical)


def test_least_typical_and_doubtful_images_are_on_the_card(out: Path, show: Show):
    rows = Page.of(out).data["rows"]
    page = show(out / "report.html")
    shown = page.locator("#category-4 .unsure .thumb").evaluate_all(
        "nodes => nodes.map(n => n.ariaLabel)"
    )
    front = page.locator("#category-4 > .pictures .thumb").evaluate_all(
        "nodes => nodes.map(n => n.ariaLabel)"
    )
    rest = [
        (score, name)
        for score, name, c in zip(rows["score"], rows["id"], rows["category"])
        if c == 4 and name not in front
    ]
    assert len(shown) == 6 and min(rest)[1] in shown


def test_search_finds_any_file_and_any_suggested_name(out: Path, show: Show):
    page = show(out / "report.html")
    page.fill("#filter", "#077")
    page.locator("#found .thumb").wait_for()
    assert page.locator("#found .thumb").get_attribute("aria-label") == "day 2/photo #077.png"
    expect(page.locator("#matches")).to_have_text("1 category, 1 image")
    expect(page.locator(".card")).to_have_count(1)
    page.fill("#filter", "moon")
    expect(page.locator(".card")).to_have_count(2)
    page.fill("#filter", "")
    expect(page.locator(".card")).to_have_count(5)


def answer(page: Any, text: str) -> None:
    page.fill("#ask-field", text)
    page.keyboard.press("Enter")


def chosen_images(page: Any, *places: int) -> list[str]:
    page.click("#pick")
    nodes = [page.locator("#grid .thumb").nth(place) for place in places]
    names = [node.get_attribute("aria-label") for node in nodes]
    for node in nodes:
        node.click()
    return names


def test_edits_are_made_undone_kept_and_downloaded(out: Path, show: Show, tmp_path: Path):
    page = show(out / "report.html", accept_downloads=True)
    page.locator("#category-3").get_by_text("✓ yes").click()
    expect(page.locator("#category-3 h3")).to_have_text("soccer ball")
    page.locator("#category-4").get_by_text("rename").click()
    answer(page, " moose ")
    expect(page.locator("#category-4 h3")).to_have_text("moose")
    open_category(page, 4)
    moved = chosen_images(page, 0, 5)
    page.click("#move")
    answer(page, "cat")
    expect(page.locator("#grid .thumb")).to_have_count(28)
    split = chosen_images(page, 1, 2, 3)
    page.click("#split")
    answer(page, "calf")
    expect(page.locator("#grid .thumb")).to_have_count(25)
    page.click("#gallery-close")
    expect(page.locator("#category-0 .count strong")).to_have_text("17")
    expect(page.locator("#category-1000004 h3")).to_have_text("calf")
    page.locator("#category-3").get_by_text("merge").click()
    answer(page, "bird #2")
    expect(page.locator("#category-3")).to_have_count(0)
    expect(page.locator("#category-2 .count strong")).to_have_text("30")
    page.locator("#category-1").get_by_text("hide").click()
    expect(page.locator("#category-1")).to_have_count(0)
    page.click("#undo")
    expect(page.locator("#category-1")).to_have_count(1)
    page.click("#redo")
    page.reload()  # nothing is lost
    expect(page.locator("#edit-count")).to_have_text("6 edits")
    with page.expect_download() as download:
        page.click("#download")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert json.loads(file.read_text()) == {
        "format": "ttgcd.edits/1",
        "edits": [
            {"op": "rename", "category": 3, "name": "soccer ball"},
            {"op": "rename", "category": 4, "name": "moose"},
            {"op": "move", "images": moved, "into": 0},
            {"op": "split", "category": 4, "images": split, "name": "calf"},
            {"op": "merge", "category": 3, "into": 2},
            {"op": "hide", "category": 1},
        ],
    }


def test_a_range_of_images_is_picked_with_the_shift_key(out: Path, show: Show):
    page = show(out / "report.html")
    open_category(page, 4)
    chosen_images(page, 2)
    page.locator("#grid .thumb").nth(9).click(modifiers=["Shift"])
    expect(page.locator("#grid .thumb[aria-pressed=true]")).to_have_count(8)
    expect(page.locator("#move")).to_have_text("Move 8 images to …")


def test_a_name_that_is_taken_is_an_offer_to_merge(out: Path, show: Show):
    page = show(out / "report.html")
    for number in (3, 4):  # both may be a soccer ball
        page.locator(f"#category-{number}").get_by_text("✓ yes").click()
    expect(page.locator("#ask-label")).to_have_text(
        "There is a category “soccer ball” already. Merge the two?"
    )
    page.keyboard.press("Escape")
    expect(page.locator("#category-4 h3")).to_have_text("soccer ball? novel 2")
    page.locator("#category-4").get_by_text("✓ yes").click()
    page.locator("#ask").get_by_text("OK").click()
    expect(page.locator("#category-3 .count strong")).to_have_text("45")
    expect(page.locator("#category-4")).to_have_count(0)


def test_a_known_class_keeps_its_name_and_stays(out: Path, show: Show):
    page = show(out / "report.html")
    links = page.locator("#category-0 .links")
    expect(links).to_have_text("all 15hide")
    open_category(page, 0)
    for button in ("#rename", "#merge"):
        expect(page.locator(button)).to_be_hidden()


def test_a_category_is_shown_again_and_later_splits_keep_their_names(out: Path, show: Show):
    page = show(out / "report.html")
    page.locator("#category-1").get_by_text("hide").click()
    open_category(page, 4)
    chosen_images(page, 0, 1)
    page.click("#split")
    answer(page, "calf")
    page.click("#gallery-close")
    page.locator("#category-1000002").get_by_text("rename").click()
    answer(page, "foal")
    page.get_by_text("Show dog again").click()
    expect(page.locator("#category-1")).to_have_count(1)
    expect(page.locator("#category-1000001 h3")).to_have_text("foal")


def test_questions_are_answered_by_an_edit_or_put_aside(out: Path, show: Show):
    index = out / "report_files" / "gallery.json"
    gallery = json.loads(index.read_text())
    asked = [["same", [3, 4], None], ["border", [0, 1], 0], ["mixed", [2], None]]
    index.write_text(json.dumps({**gallery, "questions": asked}))
    write_report(out)
    page = show(out / "report.html")
    expect(page.locator("#to-questions")).to_have_text("3 questions")
    page.locator(".question").get_by_text("Same: merge").click()
    expect(page.locator("#category-3")).to_have_count(0)  # the smaller of two new ones
    expect(page.locator("#category-4 .count strong")).to_have_text("45")
    page.locator(".question").get_by_text("dog", exact=True).last.click()
    expect(page.locator("#category-1 .count strong")).to_have_text("16")
    page.locator(".question").get_by_text("One thing").click()
    expect(page.locator("#questions")).to_be_hidden()
    page.click("#undo")
    expect(page.locator(".question h3")).to_have_text("Which one?")  # open again


def test_the_download_is_applied_and_the_page_shows_it(
    real_run: Any, tmp_path: Path, show: Show, capsys: pytest.CaptureFixture[str]
):
    import shutil

    out = tmp_path / "found"
    shutil.copytree(real_run.out, out)
    page = show(out / "report.html", accept_downloads=True)
    numbers = page.locator("#novel .card").evaluate_all("cards => cards.map(c => c.dataset.id)")
    first, second, third = numbers[:3]
    page.locator(f"#category-{first}").get_by_text("rename").click()
    answer(page, "my own name")
    open_category(page, first)
    chosen_images(page, 0)
    page.click("#split")
    answer(page, "another")
    chosen_images(page, 0)
    page.click("#move")
    answer(page, "another")
    page.click("#gallery-close")
    page.locator(f"#category-{second}").get_by_text("merge").click()
    answer(page, real_run.known[0])
    page.locator(f"#category-{third}").get_by_text("hide").click()
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(tmp_path / "edits.json")
    assert main(["edit", str(out), "apply", str(tmp_path / "edits.json")]) == 0
    assert "does not apply" not in capsys.readouterr().out
    page.reload()
    expect(page.locator(f"#category-{first} h3")).to_have_text("my own name")
    expect(page.locator("#category-1000002 h3")).to_have_text("another")
    for number in (second, third):
        expect(page.locator(f"#category-{number}")).to_have_count(0)
    expect(page.locator("#edits")).to_be_hidden()  # they are in the run now


def test_the_keyboard_is_enough(out: Path, show: Show):
    page = show(out / "report.html")
    page.keyboard.press("/")
    page.keyboard.type("soccer")
    expect(page.locator(".card")).to_have_count(2)
    page.locator("#category-4 .open").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    expect(page.locator("#grid .thumb[aria-pressed=true]")).to_have_count(1)
    expect(page.locator("#move")).to_have_text("Move 1 image to …")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_without_scrolling_sideways(out: Path, show: Show, scheme: Any):
    page = show(out / "report.html", 390, 844, color_scheme=scheme)
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= 390
    open_category(page, 4)
    assert page.evaluate("document.querySelector('#gallery').scrollWidth") <= 390
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark")


def test_names_do_not_run_as_script(tmp_path: Path, show: Show):
    out = write_run(
        tmp_path / "run",
        np.arange(60) % 5,
        [EVIL.format(name) for name in "abc"],
        ids=[EVIL.format(i) for i in range(60)],
        suggested=[EVIL.format("s")],
        notes=[EVIL],
        input={"kind": "images", "source": f"/x/{EVIL}", "folder": "javascript:alert(1)//"},
    )
    write_report(out)
    text = (out / "report.html").read_text()
    # Without the page's policy as well: escaping alone must hold.
    bare = out / "bare.html"
    bare.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text))
    for path in (out / "report.html", bare):
        page = show(path)
        page.fill("#filter", "script")
        expect(page.locator("#matches")).to_have_text("5 categories, 60 images")
        page.fill("#filter", "")
        open_category(page, 4)
        page.locator("#grid .thumb").first.click()
        page.locator("#picture[open]").wait_for()
        assert page.title().endswith(": 2 new categories - ttgcd")
        expect(page.locator("img[src=x]")).to_have_count(0)
        address = page.locator("#original").evaluate("a => a.protocol")
        assert address == "file:"


def test_ten_thousand_images_in_three_hundred_categories_open_at_once(tmp_path: Path, show: Show):
    rng = np.random.default_rng(0)
    out = write_run(
        tmp_path / "run",
        rng.integers(0, 300, 10_000),
        [f"known {i}" for i in range(100)],
        200,
        score=rng.random(10_000),
        novelty=rng.normal(size=10_000),
    )
    write_report(out)
    page = show(out / "report.html")
    expect(page.locator(".card")).to_have_count(48)  # a few of each kind, more on demand
    page.locator("#novel .more").click()
    expect(page.locator(".card")).to_have_count(48 + 96)
    page.click("#review")
    assert len(grid(page)) == 240
    page.evaluate("document.querySelector('#gallery-scroll').scrollTo(0, 1e6)")
    expect(page.locator("#grid .thumb")).to_have_count(400)
