"""`ttgcd discover` leaves a report that says what was done and shows what was found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.report.conftest import RealRun
from tests.report.runs import Page
from ttgcd.cli import main
from ttgcd.report import write_report


@pytest.fixture(scope="module")
def page(real_run: RealRun) -> Page:
    return Page.of(real_run.out)


def record(run: RealRun) -> dict:
    return json.loads((run.out / "run.json").read_text())


def test_the_header_names_folder_model_method_date_and_duration(page: Page, real_run: RealRun):
    said = page.words("b")
    assert "my icons" in said and "mini" in said and "pact (paper)" in said
    assert record(real_run)["ended"][:4] in said and "UTC" in said
    assert any(word.endswith(" s") for word in page.text["b"])


def test_the_title_tells_this_run_from_another(page: Page):
    assert page.words("title").startswith("my icons: ")


def test_the_headline_counts_images_and_the_accuracies_stand_apart(page: Page, real_run: RealRun):
    run = record(real_run)
    assert page.words("h1").startswith(f"{run['samples']:,} images: ")
    table = dict(zip(page.text["th"], page.text["td"]))
    assert table["All"] == f"{run['scores']['all']:.1f}"
    assert table["All"] not in page.words("h1")


def test_the_plot_of_the_number_of_new_categories_is_of_new_ones(page: Page, real_run: RealRun):
    run, known = record(real_run), len(real_run.known)
    tried = [number for number, _ in page.data["estimate"]]
    assert tried == sorted(k - known for k, _ in run["count_trace"])
    best = max(page.data["estimate"], key=lambda pair: pair[1])[0]
    assert best == run["novel"]


def test_by_default_a_card_begins_with_what_fits_best(real_run: RealRun, tmp_path: Path):
    options = ["--known", ",".join(real_run.known), "--novel", "6", "--model", "mini", "--quiet"]
    out = tmp_path / "found"
    assert main(["discover", str(real_run.icons), *options, "--out", str(out)]) == 0
    rows = pq.read_table(out / "assignments.parquet").to_pylist()
    score = {row["id"]: row["score"] for row in rows}
    assert max(score.values()) > 1  # scores of the default are no cosines
    for c in json.loads((out / "categories.json").read_text())["categories"]:
        shown = [score[name] for name in c["exemplars"]]
        assert shown == sorted(shown, reverse=True)
        if c["kind"] == "novel" and shown:
            assert shown[0] == max(row["score"] for row in rows if row["category"] == c["id"])
    page = Page.of(out)
    assert "scout" in page.text["b"] and "scout (scout)" not in page.words("b")


def test_the_most_typical_image_of_a_new_category_is_not_its_seed(real_run: RealRun):
    rows = {r["id"]: r for r in pq.read_table(real_run.out / "assignments.parquet").to_pylist()}
    found = json.loads((real_run.out / "categories.json").read_text())["categories"]
    large = [c for c in found if c["kind"] == "novel" and c["count"] >= 3]
    seeds = [c for c in large if any(rows[i]["score"] > 0.9999 for i in c["exemplars"])]
    assert large and seeds  # there are seeds, they only do not come first
    assert all(rows[c["exemplars"][0]]["score"] < 0.9999 for c in large)


def test_every_image_can_be_found_by_its_file_name(page: Page, real_run: RealRun):
    there = {str(p.relative_to(real_run.icons)) for p in real_run.icons.rglob("* *.png")}
    assert set(page.data["rows"]["id"]) == there


def test_every_image_has_its_picture_in_the_cell_that_the_page_looks_in(
    page: Page, real_run: RealRun
):
    ids, sheets = page.data["rows"]["id"], page.data["sheets"]
    assert not page.data["missing"]
    for row in (0, 9, len(ids) - 1):
        sheet, cell = divmod(row, sheets["columns"] * sheets["rows"])
        picture = Image.open(real_run.out / "report_files" / f"{sheet:05d}.jpg")
        side = picture.width // sheets["columns"]
        x, y = cell % sheets["columns"] * side, cell // sheets["columns"] * side
        packed = picture.crop((x, y, x + side, y + side)).convert("L").resize((16, 16))
        icon = Image.open(real_run.icons / ids[row]).convert("L").resize((16, 16))
        difference = np.abs(np.asarray(packed, float) - np.asarray(icon, float))
        assert difference.mean() < 12


def test_the_originals_are_where_the_page_says(page: Page, real_run: RealRun):
    from urllib.parse import unquote

    base = real_run.out / unquote(page.data["originals"])
    assert all((base / name).is_file() for name in page.data["rows"]["id"])


def test_labels_give_a_reliability_plot(page: Page):
    assert 5 <= len(page.data["reliability"]) <= 10 and page.data["calibrated"]


def test_the_page_asks_what_a_look_would_decide(page: Page):
    asked = page.data["questions"]
    assert asked and {ask for ask, _, _ in asked} <= {"same", "mixed", "border"}
    ids = {c["id"] for c in page.data["categories"]}
    assert all(set(categories) <= ids for _, categories, _ in asked)


def test_a_small_page_carries_its_pictures_with_it(page: Page):
    assert all(at.startswith("data:image/jpeg;base64,") for at in page.data["sheets"]["at"])


def test_what_was_set_aside_is_listed_with_its_reason(page: Page):
    assert "broken.png" in page.text["th"]
    assert any("not an image" in text for text in page.text["td"])


def test_a_sorted_folder_is_not_called_healthy(page: Page):
    verdict = next(a for tag, a in page.elements if (a.get("class") or "").startswith("verdict"))
    assert verdict["class"] == "verdict bad"
    said = page.words("li")
    assert "unlike the rest" in said and "--in-order" in said
    assert "By your labels only" in said


def test_the_page_is_drawn_again_without_images_and_without_a_model(
    real_run: RealRun, tmp_path: Path
):
    import shutil

    shutil.copytree(real_run.out, tmp_path / "moved")
    before = (tmp_path / "moved" / "report.html").read_text()
    found = json.loads((tmp_path / "moved" / "categories.json").read_text())
    found["categories"][0]["name"] = "renamed by hand"
    (tmp_path / "moved" / "categories.json").write_text(json.dumps(found))
    write_report(tmp_path / "moved")
    page = Page.of(tmp_path / "moved")
    assert page.data["categories"][0]["name"] == "renamed by hand"
    assert page.data["rows"] == Page(before).data["rows"]
    assert page.data["sheets"] == Page(before).data["sheets"]
    assert page.data["points"] == Page(before).data["points"]


def test_a_run_stopped_while_pictures_are_packed_goes_on_and_leaves_them_all(
    real_run: RealRun, tmp_path: Path
):
    from ttgcd.discovery import discover

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "pictures":
            raise KeyboardInterrupt

    folder, out = real_run.icons / real_run.known[0], tmp_path / "out"
    options = {"known": real_run.known, "novel": 1, "model": "mini", "preset": "paper"}
    options["changes"] = {"epochs": 1, "warmup": 8}
    with pytest.raises(KeyboardInterrupt):
        discover(folder, out=out, progress=stop, **options)
    assert not (out / "report.html").exists()
    discover(folder, out=out, resume=True, **options)
    page = Page.of(out)
    assert len(page.data["sheets"]["at"]) == 1 and not page.data["missing"]
    discover(folder, out=out, overwrite=True, **options)  # what was there is ours to replace
    assert Page.of(out).data["rows"] == page.data["rows"]
