"""Runs that go on from an edited one: every edit goes along, and what it was about is evidence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import ttgcd
from ttgcd.cli import main
from ttgcd.datasets import load_benchmark
from ttgcd.discovery.edits.evidence import Evidence
from ttgcd.discovery.edits.records import Edit
from ttgcd.discovery.edits.replay import FIRST_SPLIT_ID
from ttgcd.discovery.saved import SavedRun
from ttgcd.errors import InputError

KNOWN = ["a", "b", "c"]
#: The classes behind what is told to be two novel categories: e and f look much alike.
CLASSES = "abcdef"


@pytest.fixture
def world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their classes and anchors; the last class is a near relation of the one before it."""
    rng = np.random.default_rng(1)
    centres = np.eye(6, 16)
    centres[5] = centres[4] + 0.6 * np.eye(16)[9]
    truth = rng.integers(0, 6, 400)
    rows = centres[truth] + 0.12 * rng.normal(size=(400, 16))
    return rows.astype(np.float32), truth, centres[:3].astype(np.float32)


def first_run(world: tuple, out: Path, preset: str = "robust") -> ttgcd.Discovery:
    rows, _, anchors = world
    return ttgcd.discover(
        rows[:200],
        known=KNOWN,
        anchors=anchors,
        novel=2,
        out=out,
        preset=preset,
        changes={"warmup": 80},
    )


def members(found: ttgcd.Discovery, truth: np.ndarray, label: int) -> list[str]:
    return [row["id"] for row in found.assignments() if truth[int(row["id"])] == label]


def home(found: ttgcd.Discovery, truth: np.ndarray, label: int) -> int:
    """The category that holds most of a class."""
    own = [row["category"] for row in found.assignments() if truth[int(row["id"])] == label]
    return Counter(own).most_common(1)[0][0]


@pytest.mark.parametrize("preset", ["robust", "scout"])
def test_a_split_category_lives_on_with_its_looks(
    world: tuple, tmp_path: Path, preset: str
) -> None:
    rows, truth, _ = world
    found = first_run(world, tmp_path / "first", preset)
    mixed = home(found, truth, 5)
    assert home(found, truth, 4) == mixed  # two classes in one category
    images = [i for i in members(found, truth, 5)[:12] if i in in_category(found, mixed)]
    new = found.split(mixed, images, name="calf")
    more = found.update(rows[200:], out=tmp_path / "more")
    assert more.unapplied() == {} and new == FIRST_SPLIT_ID + 1
    split = {row["id"] for row in more.assignments() if row["category"] == new}
    assert split and {c.id: c.name for c in more.categories}[new] == "calf"
    assert np.mean([truth[200 + int(i)] == 5 for i in split]) > 0.8
    assert len(split) > 0.6 * (truth[200:] == 5).sum()
    assert {row["kind"] for row in more.assignments() if row["category"] == new} == {"known"}


def in_category(found: ttgcd.Discovery, category: int) -> set[str]:
    return {row["id"] for row in found.assignments() if row["category"] == category}


def test_moved_images_are_evidence_and_their_namesakes_are_not(
    world: tuple, tmp_path: Path
) -> None:
    rows, truth, _ = world
    found = first_run(world, tmp_path / "first")
    mixed = home(found, truth, 5)
    image = members(found, truth, 0)[0]
    found.move([image], mixed)  # image 7 of the first run is not image 7 of the second
    more = found.update(rows[200:], out=tmp_path / "more")
    assert more.unapplied() == {}
    row = next(row for row in more.assignments() if row["id"] == image)
    assert row["confidence"] < 1.0
    again = found.update(rows[:200], out=tmp_path / "again")  # here it is the same image
    row = next(row for row in again.assignments() if row["id"] == image)
    assert row["category"] == mixed and row["confidence"] == 1.0


def test_edits_of_three_runs_speak_each_of_their_own_images(world: tuple, tmp_path: Path) -> None:
    rows, truth, _ = world
    found = first_run(world, tmp_path / "first")
    mixed = home(found, truth, 5)
    picked = [i for i in members(found, truth, 5) if i in in_category(found, mixed)]
    found.split(mixed, picked[:6], name="calf")
    second = found.update(rows[200:300], out=tmp_path / "second")
    later = truth[200:]
    strays = [i for i in members(second, later, 5) if i in in_category(second, mixed)]
    second.move([*strays[:3], members(second, later, 5)[0]], FIRST_SPLIT_ID + 1)
    second.undo()
    third = second.update(rows[300:], out=tmp_path / "third")
    assert [edit.op for edit in third.edits()] == ["split", "move", "undo"]
    first = (tmp_path / "third" / "assignments.parquet").read_bytes()
    third.redo()
    assert third.unapplied() == {}
    evidence = Evidence.load(tmp_path / "third" / "state")
    assert evidence is not None and set(evidence.last.tolist()) == {1, 3}
    split, move = third.edits()[:2]
    assert {evidence.ids[row] for row in evidence.meant_by(split)} == set(split.images)
    assert (evidence.last[evidence.meant_by(move)] == 3).all()
    third.undo()
    assert (tmp_path / "third" / "assignments.parquet").read_bytes() == first
    while any(edit.number for edit in third.edits() if edit.op != "undo"):
        try:
            third.undo()
        except InputError:
            break
    assert all(c.id < FIRST_SPLIT_ID for c in third.categories)


def test_an_edit_that_no_longer_applies_is_kept_and_reported(world: tuple, tmp_path: Path) -> None:
    rows, truth, _ = world
    found = first_run(world, tmp_path / "first")
    found.split(home(found, truth, 5), name="calf")
    more = found.update(rows[200:], out=tmp_path / "more")
    (tmp_path / "more" / "state" / "evidence.parquet").unlink()  # as if it had kept no features
    assert list(more.unapplied()) == [1] and "kept no features" in more.unapplied()[1]
    assert [edit.op for edit in more.edits()] == ["split"]


def test_own_edits_on_top_of_others_are_not_mixed_up(
    world: tuple, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _, _ = world
    np.save(tmp_path / "more.npy", rows[200:])
    found = first_run(world, tmp_path / "first")
    found.rename(3, "moose")
    words = ["discover", str(tmp_path / "more.npy"), "--from", str(tmp_path / "first")]
    words += ["--out", str(tmp_path / "more"), "--quiet"]
    assert main(words) == 0
    found.hide(4)
    assert main([*words, "--overwrite"]) == 0  # it had no edits of its own: all of them come along
    more = ttgcd.load(tmp_path / "more")
    assert [edit.op for edit in more.edits()] == ["rename", "hide"]
    more.rename(4, "elk")
    assert main([*words, "--overwrite"]) == 0
    assert [edit.op for edit in more.edits()] == ["rename", "hide", "rename"]
    found.undo()
    capsys.readouterr()
    assert main([*words, "--overwrite"]) == 2
    assert "has edits of its own" in capsys.readouterr().err
    assert [edit.op for edit in more.edits()] == ["rename", "hide", "rename"]


def test_further_images_get_a_confidence_and_the_corrections(world: tuple, tmp_path: Path) -> None:
    rows, truth, _ = world
    found = first_run(world, tmp_path / "first")
    before = found.predict(rows[200:])
    sure = before.column("confidence").to_numpy()
    given = before.column("category").to_numpy()
    right = np.where(given < 3, given == truth[200:], truth[200:] >= 3)
    assert sure.min() >= 0 and sure.max() <= 1
    assert right.all() or sure[right].mean() > sure[~right].mean()
    mixed = home(found, truth, 5)
    picked = [i for i in members(found, truth, 5) if i in in_category(found, mixed)]
    new = found.split(mixed, picked[:12], name="calf")
    after = found.predict(rows[200:])
    split = after.column("category").to_numpy() == new
    assert split.any() and (truth[200:][split] == 5).mean() > 0.8
    assert set(np.array(after.column("name").to_pylist())[split]) == {"calf"}
    np.save(tmp_path / "more.npy", rows[200:])
    words = ["assign", str(tmp_path / "first"), str(tmp_path / "more.npy")]
    assert main([*words, "--out", str(tmp_path / "assigned")]) == 0
    table = pq.read_table(tmp_path / "assigned" / "assignments.parquet")
    assert table.column("confidence").to_pylist() == after.column("confidence").to_pylist()


def test_a_run_that_goes_on_can_be_scored_and_abstain(
    world: tuple, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, truth, _ = world
    np.save(tmp_path / "more.npy", rows[200:])
    lines = ["id,label", *(f"{i},{CLASSES[t]}" for i, t in enumerate(truth[200:]))]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    first_run(world, tmp_path / "first")
    words = ["discover", str(tmp_path / "more.npy"), "--from", str(tmp_path / "first"), "--quiet"]
    words += ["--out", str(tmp_path / "more")]
    assert main([*words, "--labels", str(tmp_path / "labels.csv"), "--abstain", "0.5"]) == 0
    more = ttgcd.load(tmp_path / "more")
    assert more.scores is not None and (tmp_path / "more" / "review.csv").exists()
    capsys.readouterr()
    assert main([*words, "--warmup", "9", "--overwrite"]) == 2
    assert "--warmup is the earlier run's" in capsys.readouterr().err
    assert main([*words, "--seed", "3"]) == 2
    assert "--seed is the earlier run's" in capsys.readouterr().err


def test_a_named_category_is_known_by_text_if_its_name_fits(tmp_path: Path) -> None:
    """With the embedded model, on icons of eight classes, four of them known."""
    bench = load_benchmark("iconshift", None)
    source, labels = bench.open_stream("line")
    names = [*bench.known, *bench.novel]
    some = [row for row in range(len(labels)) if labels[row] in (0, 1, 2, 3, 60, 61, 62, 70)]
    images = [bytes(source.read(row)) for row in some]
    truth = labels[some]
    found = ttgcd.discover(
        images[:60], known=names[:4], novel=4, model="mini", out=tmp_path / "first"
    )
    home_of = {home(found, truth, label): label for label in (60, 61, 62, 70)}
    right, odd = [category for category in sorted(home_of) if category >= 4][:2]
    found.rename(right, names[home_of[right]])
    found.rename(odd, "heap no 17")
    saved = SavedRun(tmp_path / "first")
    assert list(saved.named_texts(saved.task())) == [right]
    more = found.update(images[60:], out=tmp_path / "more")
    kinds = {c.id: (c.kind, c.name) for c in more.categories}
    assert kinds[right] == ("known", names[home_of[right]]) and kinds[odd][0] == "known"
    state = SavedRun(tmp_path / "more").state
    assert state.arrays["texts.named"].shape[0] == 1 and state.values["stream"]["named"] == 1
    found.undo(1)  # the next run does not hear of the name
    assert not SavedRun(tmp_path / "first").named_texts(saved.task())


def test_evidence_keeps_what_edits_mean_and_a_sample_of_the_rest(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1000, 8)).astype(np.float16)
    ids = [str(i) for i in range(1000)]
    whole = Evidence.of_run(ids, rng.integers(0, 5, 1000), features, (0, 2))
    edits = [
        Edit("move", images=("999", "3"), into=1, number=1),
        Edit("hide", category=3, number=2),
    ]
    kept = whole.handed_on(edits, most=50)
    assert len(kept) == 52 and {"999", "3"} <= set(kept.ids)
    kept.save(tmp_path)
    again = Evidence.load(tmp_path)
    assert again is not None and again.ids == kept.ids
    assert (again.features == kept.features).all() and (again.category == kept.category).all()
    assert not len(again.meant_by(Edit("move", images=("3",), into=1, number=3)))
    (tmp_path / "evidence.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(InputError, match="is damaged"):
        Evidence.load(tmp_path)
