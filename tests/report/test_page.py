from __future__ import annotations

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.report.streams import Coloured, Page, batch, records, summarise
from ttgcd.methods.answer import Answer
from ttgcd.report import StreamSummary, thumbnail, write_report
from ttgcd.report.layout import layout

EVIL = '{}</script><script>document.title="PWNED"</script><img src=x onerror="alert(1)">\'"&$x'


def build(path, summary, name="{}", thumbnails=None, **changes):
    arguments = {
        "categories": records(summary, name),
        "manifest": {"source": name.format("photos"), "method": "pact", "rejected": 2},
        "health": {"inactive_known": [name.format("a")], "realign_losses": [2.0, 1.0, 0.5]},
        **changes,
    }
    write_report(path, summary=summary, thumbnails=thumbnails, **arguments)
    return path.read_text(encoding="utf-8")


def data_of(page: Page) -> dict:
    return json.loads(next(t for t in page.text["script"] if t.lstrip().startswith("{")))


def test_pictures_and_numbers_are_on_a_well_formed_page(tmp_path):
    summary, source = summarise(2, 2, 300), Coloured()
    text = build(tmp_path / "r.html", summary, thumbnails=lambda at: thumbnail(source, at))
    page = Page(text)
    images = page.all("img")
    assert len(images) > 20
    assert all(image["src"].startswith("data:image/jpeg;base64,") for image in images)
    assert all(image["alt"] for image in images)
    cards = [a for a in page.all("article")]
    assert [c["data-id"] for c in cards[:2]] in (["2", "3"], ["3", "2"])  # novel ones first
    assert f"{summary.counts[2]:,}" in page.text["strong"]
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_nothing_is_loaded_from_elsewhere(tmp_path):
    source = Coloured()
    text = build(
        tmp_path / "r.html", summarise(2, 1, 100), thumbnails=lambda at: thumbnail(source, at)
    )
    page = Page(text)
    for _, attributes in page.elements:
        for key in ("src", "href", "data", "action", "srcset"):
            assert (attributes.get(key) or "#").startswith(("data:image/", "#"))
    assert not page.all("link")
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a namespace, not a load


def test_names_cannot_become_markup(tmp_path):
    summary, source = summarise(3, 2, 200, prefix=EVIL.format("")), Coloured(prefix=EVIL)
    text = build(
        tmp_path / "r.html",
        summary,
        name=EVIL,
        thumbnails=lambda at: thumbnail(source, at),
        notes=[EVIL],
        scores={"all": 0.5, EVIL: 0.5},
    )
    page = Page(text)
    assert len(page.all("script")) == 2
    assert all(
        i["src"].startswith("data:image/jpeg") and "onerror" not in i for i in page.all("img")
    )
    assert EVIL.format("class 0") in page.text["h3"]
    assert EVIL in page.text["p"]
    assert EVIL.format("class 0") in [c["name"] for c in data_of(page)["categories"]]


def test_a_picture_that_is_not_a_data_uri_is_left_out(tmp_path):
    text = build(tmp_path / "r.html", summarise(1, 1, 50), thumbnails=lambda at: "http://x/y.png")
    assert not Page(text).all("img") and "y.png" not in text


def test_the_script_matches_its_policy(tmp_path):
    import base64
    import hashlib

    text = build(tmp_path / "r.html", summarise(1, 1, 50))
    script = re.search(r"<script>(.*?)</script>", text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


@pytest.mark.parametrize(("known", "novel"), [(1, 0), (1, 1), (4, 0)])
def test_few_categories(tmp_path, known, novel):
    page = Page(build(tmp_path / "r.html", summarise(known, novel, 120)))
    assert len(page.all("article")) == known + novel
    assert ("all in the classes you named" in " ".join(page.text["h1"])) == (novel == 0)


def test_embeddings_have_no_pictures_and_the_page_says_so(tmp_path):
    text = build(tmp_path / "r.html", summarise(2, 2, 200))
    page = Page(text)
    assert not page.all("img")
    assert any("holds embeddings, not images" in t for t in page.text["p"])
    assert any("img-" in t for t in page.text["li"])


def test_an_empty_stream_and_a_method_without_features(tmp_path):
    summary = StreamSummary(2, 1)
    assert "Nothing was sorted yet" in build(tmp_path / "r.html", summary, health={})
    summary.write(batch(0, 30), Answer.make(0, np.arange(30) % 3, np.ones(30)))
    assert "there is no map" in build(tmp_path / "r.html", summary, health={})


def test_a_thousand_categories_stay_small(tmp_path):
    summary = StreamSummary(800, 200, map_points=20)
    for start in range(0, 4000, 500):
        category = np.arange(start, start + 500) % 1000
        summary.write(batch(start, 500), Answer.make(start, category, np.ones(500)))
    picture = "data:image/jpeg;base64," + "A" * 4000  # a photograph of 96 pixels
    text = build(tmp_path / "r.html", summary, thumbnails=lambda at: picture)
    assert len(Page(text).all("article")) == 1000
    assert len(text) < 13_000_000


def test_scores_are_shown_as_percent_and_undefined_ones_left_out(tmp_path):
    scores = {"all": 0.873, "known": 0.912, "novel": float("nan"), "samples": 1200}
    page = Page(build(tmp_path / "r.html", summarise(2, 1, 60), scores=scores))
    assert page.text["td"] == ["87.3", "91.2", "1,200"]


def test_numbers_that_are_not_finite_leave_valid_json(tmp_path):
    health = {"realign_losses": [1.0, float("nan")], "prototype_drift": [None, float("inf"), 0.1]}
    page = Page(build(tmp_path / "r.html", summarise(2, 1, 60), health=health))
    assert data_of(page)["losses"] == [1.0, None]
    assert [d[1] for d in data_of(page)["drift"]] == [0.1]


def test_file_names_that_are_not_unicode_do_not_stop_the_report(tmp_path):
    assert build(tmp_path / "r.html", summarise(1, 1, 50, prefix="bad\udcff"))


def test_thumbnails_are_small_and_unreadable_ones_are_none():
    source = Coloured()
    assert thumbnail(source, 6) is None
    assert len(thumbnail(source, 0)) < 2000
    wide = Coloured()
    wide.read = lambda position: np.zeros((50, 6000, 3), np.uint8)
    assert thumbnail(wide, 0).startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
def test_any_number_of_points_has_a_layout(n):
    features = np.random.default_rng(0).standard_normal((n, 8)).astype(np.float32)
    points, _ = layout(features)
    assert points.shape == (n, 2)
    assert np.isfinite(points).all() and points.min(initial=0) >= 0 and points.max(initial=1) <= 1


def test_equal_points_have_a_layout():
    points, _ = layout(np.ones((50, 8), np.float32))
    assert np.isfinite(points).all()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_names_do_not_run_in_a_browser(tmp_path):
    text = build(tmp_path / "r.html", summarise(3, 2, 200, prefix=EVIL), name=EVIL)
    # Without the page's policy as well: escaping alone must hold.
    (tmp_path / "bare.html").write_text(re.sub(r"<meta http-equiv[^>]*>", "", text))
    for name in ("r.html", "bare.html"):
        flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
        flags += " --disable-background-networking --disable-component-update --disable-sync"
        command = ["chromium", *flags.split(), f"--user-data-dir={tmp_path / 'profile'}"]
        command += ["--virtual-time-budget=3000", "--dump-dom", (tmp_path / name).as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert "<title>Discovery report: photos" in done.stdout
        assert "<option" in done.stdout  # our own script ran
        assert '<img src="x"' not in done.stdout
