from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from tests.report.runs import Page, write_pictures, write_run
from ttgcd.errors import InputError
from ttgcd.report import write_report
from ttgcd.report.gallery import picture_order
from ttgcd.report.layout import layout
from ttgcd.report.run_files import RunFiles
from ttgcd.report.thumbnails import thumbnail
from ttgcd.report.verdict import PAGES
from ttgcd.streams.arrays import open_array
from ttgcd.streams.open import open_source

EVIL = '{}</script><script>document.title="PWNED"</script><img src=x onerror="alert(1)">\'"&$x'


def test_nothing_is_loaded_from_elsewhere(tmp_path):
    out = write_run(tmp_path / "run", np.arange(100) % 5)
    write_report(out)
    text = (out / "report.html").read_text()
    page = Page(text)
    for tag, attributes in page.elements:
        for key in ("src", "href", "data", "action", "srcset"):
            there = attributes.get(key) or "#"
            # The documentation is a click away, it is not loaded.
            assert there.startswith("#") or (tag == "a" and there.startswith(PAGES))
    assert not page.all("link")
    assert not re.search(r"@import|fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(", text)
    addresses = set(re.findall(r"https?://[^\s\"'<>#]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", PAGES}  # a namespace, not a load


def test_names_cannot_become_markup(tmp_path):
    ids = [EVIL.format(i) for i in range(100)]
    out = write_run(
        tmp_path / "run",
        np.arange(100) % 5,
        [EVIL.format(name) for name in "abc"],
        ids=ids,
        suggested=[EVIL],
        notes=[EVIL],
        input={"kind": "images", "source": f"/{EVIL}", "folder": f"/{EVIL}"},
        settings={"method": EVIL, "config": {}},
        model={"name": EVIL},
        scores={"all": 50.0, EVIL: 50.0},
        health={"inactive_known": [EVIL]},
        rejected=[("<b>", "<i>")],
    )
    write_report(out)
    page = Page.of(out)
    assert len(page.all("script")) == 2 and not page.all("img") and not page.all("i")
    assert page.data["categories"][0]["name"] == EVIL.format("a")
    assert set(page.data["rows"]["id"]) == set(ids)
    assert not re.search(r"[<>\"']", page.data["originals"])


def test_the_script_matches_its_policy(tmp_path):
    out = write_run(tmp_path / "run", np.arange(50) % 5)
    text = write_report(out).read_text()
    script = re.search(r"<script>(.*?)</script>", text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_ten_thousand_images_leave_a_page_under_three_megabytes(tmp_path):
    ids = [f"site-{i % 40:02d}/2026-03-{i % 28:02d}/IMG_{i:06d}.png" for i in range(10_000)]
    rng = np.random.default_rng(0)
    out = write_run(
        tmp_path / "run",
        rng.integers(0, 300, 10_000),
        [f"known class {i}" for i in range(100)],
        200,
        ids=ids,
        score=rng.random(10_000),
        suggested=["a suggested name", "another one", "and a third"],
    )
    write_report(out, source=open_array(np.zeros((10, 8, 8, 3), np.uint8)))
    assert (out / "report.html").stat().st_size < 3_000_000
    assert len(Page.of(out).data["rows"]["id"]) == 10_000


def test_a_longer_run_keeps_the_front_of_every_category(tmp_path):
    category = np.where(np.arange(6000) % 3, 0, np.arange(6000) % 5)
    run = RunFiles.read(write_run(tmp_path / "run", category))
    order = picture_order(run, np.array([5999]), most=1000)
    assert 900 < len(order) < 1200 and len(set(order)) == len(order) and 5999 in order
    assert set(category[order]) == {0, 1, 2, 3, 4}
    assert len(picture_order(run, np.zeros(0, int))) == 6000


def test_few_categories_and_no_new_ones(tmp_path):
    for n, novel in ((1, 0), (1, 1), (3, 0)):
        out = write_run(tmp_path / f"{n}{novel}", np.zeros(90, int), ["x"] * n, novel)
        write_report(out)
        assert "all in the classes you named" in Page.of(out).words("h1")


def test_embeddings_have_no_pictures_and_the_page_says_so(tmp_path):
    out = write_run(tmp_path / "run", np.arange(60) % 5, input={"kind": "embeddings"})
    write_report(out)
    page = Page.of(out)
    assert page.data["sheets"]["at"] == [] and page.data["originals"] is None
    assert "holds embeddings, not images" in page.words("p")


def test_images_that_are_gone_leave_a_page_that_says_so(tmp_path):
    out = write_run(tmp_path / "run", np.arange(60) % 5, input={"kind": "images", "source": "/no"})
    write_report(out)
    assert "could not be read again" in Page.of(out).words("p")


def test_pictures_never_packed_are_looked_for_where_the_images_came_from(tmp_path):
    ids = [f"{i}.png" for i in range(20)]
    images = write_pictures(tmp_path / "images", ids)
    where = {"kind": "images", "source": str(images), "folder": str(images)}
    out = write_run(tmp_path / "run", np.arange(20) % 5, ids=ids, input=where)
    write_report(out)
    page = Page.of(out)
    assert len(page.data["sheets"]["at"]) == 1 and page.data["originals"] == "./../images/"


def test_scores_that_are_not_defined_are_left_out(tmp_path):
    scores = {"all": 87.3, "known": 91.2, "novel": None, "samples": 1200, "notes": []}
    out = write_run(tmp_path / "run", np.arange(60) % 5, scores=scores)
    write_report(out)
    assert Page.of(out).text["td"] == ["87.3", "91.2", "1,200"]


def test_numbers_that_are_not_finite_leave_valid_json(tmp_path):
    health = {"realign_losses": [1.0, float("nan")], "prototype_drift": [None, float("inf"), 0.1]}
    out = write_run(tmp_path / "run", np.arange(60) % 5, health=health)
    write_report(out)
    page = Page.of(out)
    assert page.data["losses"] == [1.0, None] and page.data["drift"] == [[2, 0.1]]


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"run\.json"):
        write_report(tmp_path)


def test_a_damaged_gallery_is_made_again(tmp_path):
    out = write_run(tmp_path / "run", np.arange(60) % 5)
    write_report(out)
    good = (out / "report_files" / "gallery.json").read_text()
    for bad in ("", "{}", "[]", json.dumps({**json.loads(good), "order": [10**6]})):
        (out / "report_files" / "gallery.json").write_text(bad)
        write_report(out)
        assert (out / "report_files" / "gallery.json").read_text() == good


def test_edits_of_another_state_of_the_run_are_not_met(tmp_path):
    out = write_run(tmp_path / "run", np.arange(60) % 5)
    write_report(out)
    before = Page.of(out).data["run"]
    (out / "edits.jsonl").write_text("{}\n")
    write_report(out)
    assert Page.of(out).data["run"] != before


@pytest.mark.parametrize("shape", [(50, 6000, 3), (6000, 50, 3), (1, 1, 3), (300, 200, 3)])
def test_thumbnails_are_squares_of_one_size(shape):
    source = open_array(np.zeros((1, *shape), np.uint8))
    assert thumbnail(source, 0, 112).size == (112, 112)


def test_a_picture_that_cannot_be_read_has_no_thumbnail(tmp_path):
    write_pictures(tmp_path, ["a.png", "b.png"])
    source = open_source(str(tmp_path))
    (tmp_path / "b.png").write_bytes(b"broken")
    assert thumbnail(source, 0, 112) is not None
    assert thumbnail(source, 1, 112) is None and thumbnail(source, -1, 112) is None


@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
def test_any_number_of_points_has_a_layout(n):
    features = np.random.default_rng(0).standard_normal((n, 8)).astype(np.float32)
    points, _ = layout(features)
    assert points.shape == (n, 2)
    assert np.isfinite(points).all() and points.min(initial=0) >= 0 and points.max(initial=1) <= 1


def test_equal_points_have_a_layout():
    points, _ = layout(np.ones((50, 8), np.float32))
    assert np.isfinite(points).all()
