"""Edits and confidence through the front door: runs that are made once, again and otherwise."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ttgcd.cli import main
from ttgcd.discovery.edits import Edit, EditedFolder
from ttgcd.discovery.review import UNSURE
from ttgcd.errors import InputError
from ttgcd.evaluation.files import evaluate_files


@pytest.fixture
def world(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 16))
    truth = rng.integers(0, 6, 200)
    rows = centres[truth] + 0.7 * rng.normal(size=(200, 16))
    np.save(tmp_path / "rows.npy", rows.astype(np.float32))
    np.save(tmp_path / "anchors.npy", centres[:3].astype(np.float32))
    lines = ["id,label", *(f"{i},{'abcdef'[t]}" for i, t in enumerate(truth))]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    return tmp_path


def run(world: Path, *more: str, known: str = "a,b,c") -> int:
    words = ["discover", str(world / "rows.npy"), "--anchors", str(world / "anchors.npy")]
    words += ["--known", known, "--novel", "3", "--warmup", "80", "--quiet", "--in-order"]
    return main([*words, "--preset", "paper", "--out", str(world / "out"), *more])


def names(out: Path) -> dict[int, str]:
    records = json.loads((out / "categories.json").read_text("utf-8"))["categories"]
    return {record["id"]: record["name"] for record in records}


def test_every_answer_has_a_confidence_that_tells_right_from_wrong(world: Path) -> None:
    assert run(world) == 0
    table = pq.read_table(world / "out" / "assignments.parquet")
    sure = table.column("confidence").to_numpy()
    assert len(sure) == 200 and sure.min() >= 0 and sure.max() <= 1
    labels = [line.split(",")[1] for line in (world / "labels.csv").read_text().split("\n")[1:]]
    truth = np.array(["abcdef".index(labels[int(i)]) for i in table.column("id").to_pylist()])
    given = table.column("category").to_numpy()
    right = np.where(given < 3, given == truth, truth >= 3)
    assert right.any() and (right.all() or sure[right].mean() > sure[~right].mean())


def test_doubtful_answers_go_to_the_pile_and_on_the_list(world: Path) -> None:
    assert run(world, "--abstain", "0.6") == 0
    out = world / "out"
    table = pq.read_table(out / "assignments.parquet").to_pylist()
    aside = {row["id"] for row in table if row["category"] == UNSURE}
    assert aside and all((row["confidence"] < 0.6) == (row["id"] in aside) for row in table)
    with open(out / "review.csv", newline="") as file:
        listed = list(csv.DictReader(file))
    assert {row["id"] for row in listed} == aside
    assert [float(row["confidence"]) for row in listed] == sorted(
        float(row["confidence"]) for row in listed
    )
    counts = json.loads((out / "categories.json").read_text("utf-8"))["categories"]
    assert sum(record["count"] for record in counts) == 200
    image = listed[0]["id"]
    EditedFolder(out).edit(Edit("move", images=(image,), into=int(listed[0]["category"])))
    assert evaluate_files(out, world / "labels.csv").scores.as_percent()["samples"] == 200
    assert run(world, "--abstain", "1.5", "--overwrite") == 2


def test_edits_survive_a_resume_and_a_run_that_is_made_again(world: Path) -> None:
    run(world)
    out = world / "out"
    folder = EditedFolder(out)
    folder.edit(Edit("rename", category=4, name="moose"))
    folder.edit(folder.in_two(5))
    edited = (out / "assignments.parquet").read_bytes()
    assert run(world, "--resume") == 0
    assert (out / "assignments.parquet").read_bytes() == edited
    assert run(world, "--overwrite") == 0
    assert (out / "assignments.parquet").read_bytes() == edited and names(out)[4] == "moose"
    while EditedFolder(out).log() and "moose" in names(out).values():
        EditedFolder(out).undo()
    assert names(out)[4] == "novel 2"


def test_edits_of_a_run_with_other_names_are_kept_apart(world: Path) -> None:
    run(world)
    out = world / "out"
    EditedFolder(out).edit(Edit("rename", category=4, name="moose"))
    assert run(world, "--overwrite", known="x,y,z") == 0
    assert names(out)[4] == "novel 2" and (out / "edits-1.jsonl").exists()
    assert not EditedFolder(out).log()


def test_an_edited_run_is_scored_like_any_other(world: Path) -> None:
    run(world)
    folder = EditedFolder(world / "out")
    before = evaluate_files(world / "out", world / "labels.csv").scores.as_percent()["all"]
    folder.edit(folder.in_two(5))
    after = evaluate_files(world / "out", world / "labels.csv").scores.as_percent()["all"]
    assert after != before and 0 < after <= 100


def test_the_verbs_of_a_discovery_change_its_files_at_once(world: Path) -> None:
    import ttgcd

    rows, anchors = np.load(world / "rows.npy"), np.load(world / "anchors.npy")
    found = ttgcd.discover(
        rows, known=["a", "b", "c"], anchors=anchors, novel=3, out=world / "out", preset="paper"
    )
    first = (world / "out" / "assignments.parquet").read_bytes()
    page = (world / "out" / "report.html").read_bytes()
    found.rename(4, "moose")
    new = found.split(5, name="calf")
    found.merge(3, 4)
    found.hide(new)
    image = found.assignments()[0]["id"]
    found.move([image], 1)
    by_id = {category.id: category for category in found.categories}
    assert by_id[4].name == "moose" and by_id[new].name == "calf" and by_id[3].merged_into == 4
    assert found.assignments()[0]["category"] == 1
    assert b"moose" in (world / "out" / "report.html").read_bytes()
    again = ttgcd.load(world / "out")
    assert [edit.op for edit in again.edits()] == ["rename", "split", "merge", "hide", "move"]
    assert again.export("csv", world / "rows.csv").images < 200  # the hidden ones stay behind
    for _ in range(5):
        again.undo()
    assert (world / "out" / "assignments.parquet").read_bytes() == first
    assert (world / "out" / "report.html").read_bytes() == page
    assert again.redo().op == "rename"
    with pytest.raises(InputError, match="no known class 'wolf'"):
        found.mark(3, "wolf")


def test_edits_go_along_when_a_run_goes_on(world: Path) -> None:
    import ttgcd

    rows, anchors = np.load(world / "rows.npy"), np.load(world / "anchors.npy")
    found = ttgcd.discover(
        rows[:140], known=["a", "b", "c"], anchors=anchors, novel=3, out=world / "out"
    )
    novel = [category.id for category in found.categories if category.kind == "novel"]
    found.rename(novel[0], "moose")
    found.move([found.assignments()[0]["id"]], 0)
    more = found.update(rows[140:], out=world / "more")
    assert {c.id: c.name for c in more.categories}[novel[0]] == "moose"
    assert [edit.op for edit in more.edits()] == ["rename", "move"]
    table = found.predict(rows[140:])
    assert set(table.column("name").to_pylist()) <= {c.name for c in found.categories}


def test_what_was_named_is_a_known_class_for_the_run_that_goes_on(world: Path) -> None:
    import ttgcd

    rows, anchors = np.load(world / "rows.npy"), np.load(world / "anchors.npy")
    found = ttgcd.discover(
        rows[:140], known=["a", "b", "c"], anchors=anchors, novel=3, out=world / "out"
    )
    largest = sorted(found.categories, key=lambda category: -category.count)
    novel = [category.id for category in largest if category.kind == "novel"]
    found.rename(novel[0], "d")
    assert {c.id: c.kind for c in found.categories}[novel[0]] == "novel"
    more = found.update(rows[140:], out=world / "more")
    assert {c.id: c.kind for c in more.categories}[novel[0]] == "known"
    named = [row for row in more.assignments() if row["category"] == novel[0]]
    assert named and {(row["kind"], row["name"]) for row in named} == {("known", "d")}
    more.rename(novel[1], "e")  # named here: known to the next run, not yet to this one
    more.rename(novel[0], "D")  # its own name can still be changed
    kinds = {c.id: (c.kind, c.name) for c in more.categories}
    assert kinds[novel[1]] == ("novel", "e") and kinds[novel[0]] == ("known", "D")
    more.undo(1)
    assert {c.id: c.kind for c in more.categories}[novel[0]] == "novel"


@pytest.mark.parametrize("method", ["scout", "kmeans", "pact"])
def test_every_kind_of_method_goes_on(world: Path, method: str) -> None:
    import ttgcd

    rows, anchors = np.load(world / "rows.npy"), np.load(world / "anchors.npy")
    found = ttgcd.discover(
        rows[:140], known=["a", "b", "c"], anchors=anchors, novel=3, method=method
    )
    assert found.update(rows[140:]).samples == 60
