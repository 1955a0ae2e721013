"""Coarser and finer answers through the front door: command, Python, estimator, exports, report."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest

import ttgcd
from tests.discovery.edits.runs import contents
from tests.report.runs import Page
from ttgcd.cli import main
from ttgcd.discovery.level_files import in_memory
from ttgcd.discovery.levels import Group
from ttgcd.errors import InputError
from ttgcd.methods.scout import Scout
from ttgcd.prototypes.curve import Curve

CLUMPS, CLASSES, EACH, DIM = 4, 3, 40, 48
KNOWN = ["cat", "dog", "car"]
#: Warm-up of a run on so few samples.
QUICK = {"warmup": 64}


def clumps(seed: int = 0, parts: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Shuffled unit rows of twelve classes in four clumps, class c in clump c // 3; with ``parts``
    class 11 is two things that lie near each other."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(CLUMPS, DIM))
    means = np.repeat(middles, CLASSES, axis=0) + 0.6 * rng.normal(size=(CLUMPS * CLASSES, DIM))
    true = rng.permutation(np.repeat(np.arange(len(means)), EACH))
    aside = 0.5 * rng.normal(size=DIM)
    side = np.where((true == 11) & parts, rng.integers(0, 2, len(true)) * 2 - 1, 0)
    rows = means[true] + side[:, None] * aside + 0.25 * rng.normal(size=(len(true), DIM))
    return unit(rows), np.where((true == 11) & (side > 0), 12, true)


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def anchors(rows: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Texts of the first three classes, near their images."""
    return unit(np.stack([rows[true == k].mean(axis=0) for k in range(len(KNOWN))]))


def found_in(out: Path | None = None, seed: int = 0, parts: bool = False, **given: Any):
    rows, true = clumps(seed, parts)
    return ttgcd.discover(
        rows,
        out=out,
        **{"known": KNOWN, "anchors": anchors(rows, true), "novel": 9, "changes": QUICK, **given},
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ttgcd.Discovery:
    """A finished run; tests that change it take a copy."""
    return found_in(tmp_path_factory.mktemp("levels") / "found", parts=True)


def nested(finer: list[int], coarser: list[int]) -> bool:
    return len({*zip(finer, coarser, strict=True)}) == len(set(finer))


def content(out: Path) -> dict[str, Any]:
    return json.loads((out / "categories.json").read_text("utf-8"))


# -- what a run leaves ----------------------------------------------------------------------------


def test_a_table_has_its_levels_nested_and_categories_have_a_parent(run) -> None:
    table = run.to_arrow()
    coarse, found, fine = (table.column(c).to_pylist() for c in ("coarse", "category", "fine"))
    assert nested(fine, found) and nested(found, coarse)
    assert len(set(coarse)) == CLUMPS and len(set(found)) == 12 and len(set(fine)) == 13
    parent = {c.id: c.parent for c in run.categories}
    assert set(parent.values()) == set(coarse)
    assert [parent[c] for c in found] == coarse
    for ids, names in (("coarse", "coarse_name"), ("fine", "fine_name")):
        pairs = {*zip(table.column(ids).to_pylist(), table.column(names).to_pylist(), strict=True)}
        assert len(pairs) == len(set(table.column(ids).to_pylist()))


def test_coarse_groups_are_the_clumps_and_fine_ones_the_two_things_in_one(run) -> None:
    _, true = clumps(parts=True)
    at = np.array([int(i) for i in run.to_arrow().column("id").to_pylist()])
    clump = np.minimum(true[at], 11) // CLASSES
    coarse = run.at("coarse").labels
    agree = [np.bincount(clump[coarse == c]).max() for c in np.unique(coarse)]
    assert sum(agree) / len(true) > 0.97
    fine = run.at("fine").labels
    pieces = [fine[(true[at] == c)] for c in (11, 12)]
    assert np.bincount(pieces[0]).argmax() != np.bincount(pieces[1]).argmax()


def test_known_classes_stay_visible_in_coarse_groups(run) -> None:
    coarse = run.at("coarse").groups
    group = next(g for g in coarse if 0 in g.categories)
    assert group.kind == "known" and set(group.categories) == {0, 1, 2}
    assert group.name.endswith(" and 1 more")
    assert set(group.name.removesuffix(" and 1 more").split(", ")) < set(KNOWN)
    others = [g for g in coarse if g is not group]
    assert {g.kind for g in others} == {"novel"}
    mixed = run.at(2).groups
    assert "mixed" in {g.kind for g in mixed}
    name = next(g for g in mixed if g.kind == "mixed").name
    assert name.split(",")[0] in KNOWN  # named ones come first


def test_every_number_of_groups_is_there_and_each_is_nested_in_the_next(run) -> None:
    before = run.at(1).labels
    assert len(set(before.tolist())) == 1
    for k in range(2, 14):
        level = run.at(k)
        assert len(level) == k == len(set(level.labels.tolist()))
        assert nested(level.labels.tolist(), before.tolist())
        assert sum(g.count for g in level.groups) == len(level.labels)
        for group in level.groups:
            assert (level.labels == group.id).sum() == group.count
        before = level.labels
    assert run.at("found").labels.tolist() == run.to_arrow().column("category").to_pylist()
    assert run.at(12).labels.tolist() == run.at("found").labels.tolist()


@pytest.mark.parametrize("level", [0, -1, "rough", 2.5, True])
def test_a_level_that_is_none_is_refused(run, level: Any) -> None:
    with pytest.raises(InputError, match="coarse, found, fine or a number"):
        run.at(level)


def test_more_groups_than_can_be_told_apart_are_refused_with_the_most(run) -> None:
    with pytest.raises(InputError, match=r"1 to 13 \(fine\), 12 were found"):
        run.at(14)


def test_rows_at_a_level_say_what_was_found_too(run) -> None:
    table, own = run.to_arrow(level="coarse"), run.to_arrow()
    assert table.column("category").to_pylist() == own.column("coarse").to_pylist()
    assert table.column("name").to_pylist() == own.column("coarse_name").to_pylist()
    assert table.column("found").to_pylist() == own.column("category").to_pylist()
    assert table.column("found_name").to_pylist() == own.column("name").to_pylist()
    assert run.assignments(level=5)[0]["category"] == int(run.at(5).labels[0])


def test_the_same_run_gives_the_same_levels(run) -> None:
    again = found_in(parts=True)
    for level in ("coarse", "fine", 7):
        assert again.at(level).groups == run.at(level).groups
        assert again.at(level).labels.tolist() == run.at(level).labels.tolist()


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The arguments of the command for the same rows."""
    rows, true = clumps(parts=True)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "anchors.npy", anchors(rows, true))
    return [
        *("discover", str(tmp_path / "rows.npy"), "--anchors", str(tmp_path / "anchors.npy")),
        *("--known", ",".join(KNOWN), "--novel", "9", "--warmup", "64", "--quiet"),
    ]


@pytest.mark.parametrize("level,count", [("coarse", 4), ("fine", 13), ("6", 6)])
def test_the_command_shows_a_level_and_exports_follow(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], level: str, count: int
) -> None:
    out = tmp_path / "found"
    assert main([*files, "--out", str(out), "--level", level]) == 0
    said = capsys.readouterr().out
    assert f"level {level}: 480 samples in {count} groups" in said
    assert "other levels: " in said and "12 found" in said and "--level of export" in said
    target = tmp_path / "rows.csv"
    assert main(["export", str(out), "--to", "csv", "--out", str(target)]) == 0
    rows = list(csv.DictReader(target.open()))
    wanted = ttgcd.load(out).at(level)
    assert [int(row["category"]) for row in rows] == wanted.labels.tolist()
    assert len({row["name"] for row in rows}) == count
    assert {"found", "found_name", "coarse", "coarse_name", "fine", "fine_name"} <= set(rows[0])
    # The table itself keeps the categories that were found: edits and later runs speak of them.
    assert len(set(pq.read_table(out / "assignments.parquet").column("category").to_pylist())) == 12
    assert content(out)["levels"][level]["count"] == count


def test_another_level_is_exported_from_a_finished_run_without_its_source(
    files: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "found"
    assert main([*files, "--out", str(out)]) == 0
    (tmp_path / "rows.npy").unlink()
    for level, count in (("coarse", 4), ("found", 12), ("5", 5)):
        target = tmp_path / f"{level}.csv"
        assert (
            main(["export", str(out), "--to", "csv", "--out", str(target), "--level", level]) == 0
        )
        assert len({row["category"] for row in csv.DictReader(target.open())}) == count


def test_the_level_does_not_decide_the_answers(files: list[str], tmp_path: Path) -> None:
    for name, more in (("a", []), ("b", ["--level", "coarse"])):
        assert main([*files, "--out", str(tmp_path / name), *more]) == 0
    tables = [(tmp_path / n / "assignments.parquet").read_bytes() for n in ("a", "b")]
    assert tables[0] == tables[1]
    # And a finished run is the same run whatever is to be shown of it.
    assert main([*files, "--out", str(tmp_path / "a"), "--resume", "--level", "fine"]) == 0


def test_too_many_groups_are_a_note_and_a_wrong_level_is_refused_before_anything_is_read(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found"
    assert main([*files, "--out", str(out), "--level", "99"]) == 0
    said = capsys.readouterr().out
    assert "note: 99 groups are more than can be told apart here: these are 13" in said
    assert "level 13: 480 samples in 13 groups" in said
    assert main([*files, "--out", str(tmp_path / "no"), "--level", "rough"]) == 2
    assert "a level is coarse, found, fine or a number of groups" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


# -- the estimator --------------------------------------------------------------------------------


def test_the_estimator_has_levels_of_the_same_fit() -> None:
    rows, true = clumps(parts=True)
    options = {"n_novel": 9, "options": QUICK, "batch_size": 96}
    estimator = ttgcd.CategoryDiscovery(anchors(rows, true), **options).fit(rows)
    labels = estimator.labels_.tolist()
    coarse, fine = estimator.at("coarse"), estimator.at("fine")
    assert len(coarse) == CLUMPS and nested(labels, coarse.labels.tolist())
    assert len(fine) == 13 and nested(fine.labels.tolist(), labels)
    assert estimator.at("found").labels.tolist() == labels
    assert len(estimator.at(3)) == 3
    steps = ttgcd.CategoryDiscovery(anchors(rows, true), **options)
    steps.partial_fit(rows[:300])
    assert len(steps.at("coarse").labels) == 300
    with pytest.raises(InputError, match="level"):
        estimator.at("rough")


def test_levels_need_no_known_class() -> None:
    rows, true = clumps()
    records = [
        {"id": c, "kind": "novel", "name": f"novel {c + 1}", "suggested_names": []}
        for c in range(12)
    ]
    levels = in_memory(rows, true, records, None)
    coarse = levels.at("coarse")
    assert len(coarse) == CLUMPS and {g.kind for g in coarse.groups} == {"novel"}
    assert all(g.name.endswith(" and 1 more") and g.name.count("novel") == 2 for g in coarse.groups)


def test_one_category_or_none_has_no_other_level() -> None:
    rows = clumps()[0][:30]
    record = {"id": 0, "kind": "known", "name": "cat", "suggested_names": []}
    levels = in_memory(unit(rows + 50), np.zeros(30, int), [record], None)
    assert levels.at("coarse").groups == (Group(0, "known", "cat", 30, (0,)),)
    assert levels.hills_note() is None


# -- corrections ----------------------------------------------------------------------------------


@pytest.fixture
def edited(run, tmp_path: Path) -> ttgcd.Discovery:
    return run.save(tmp_path / "copy")


def consistent(found: ttgcd.Discovery) -> None:
    """Columns, records and levels say the same."""
    table = found.to_arrow()
    columns = {c: table.column(c).to_pylist() for c in ("coarse", "category", "fine")}
    assert nested(columns["fine"], columns["category"])
    assert nested(columns["category"], columns["coarse"])
    for level in ("coarse", "fine"):
        assert found.at(level).labels.tolist() == columns[level]
        names = table.column(f"{level}_name").to_pylist()
        assert found.at(level).names() == names
    parent = {c.id: c.parent for c in found.categories if c.count}
    own = [c if parent[c] is None else parent[c] for c in columns["category"]]
    assert own == columns["coarse"]
    for k in range(1, len(set(columns["fine"])) + 1):
        assert len(found.at(k)) == k


def test_levels_follow_edits_and_undo_gives_the_first_files_back(edited) -> None:
    before = contents(edited.out)
    one, other = (g.categories for g in edited.at("coarse").groups[1:3])
    edited.merge(one[0], other[0])
    consistent(edited)
    assert len(edited.at("found")) == 11
    members = next(g.categories for g in edited.at("coarse").groups if other[0] in g.categories)
    assert one[0] not in members
    edited.rename(other[0], "moose")
    assert any("moose" in g.name for g in edited.at("coarse").groups)
    image = edited.to_arrow().column("id")[0].as_py()
    edited.move([image], other[0])
    consistent(edited)
    for _ in range(3):
        edited.undo()
    assert contents(edited.out) == before


def test_a_category_that_an_edit_made_has_its_place_in_the_levels(edited) -> None:
    target = edited.at("fine").groups[-1].categories[0]
    new = edited.split(target)
    consistent(edited)
    assert new in edited.at("found").labels
    group = next(g for g in edited.at("coarse").groups if new in g.categories)
    assert target in group.categories  # what was one thing looks alike still


def test_doubtful_answers_stay_a_pile_at_every_level(run, tmp_path: Path) -> None:
    sure = run.to_arrow().column("confidence").to_numpy()
    found = found_in(tmp_path / "found", parts=True, abstain=float(np.quantile(sure, 0.2)))
    pile = next(c for c in found.categories if c.kind == "unsure")
    for level in ("coarse", "fine", 2):
        group = next(g for g in found.at(level).groups if g.kind == "unsure")
        assert (group.id, group.count) == (pile.id, pile.count)
    assert len(found.at(2)) == 3  # two groups, and the pile


# -- other runs -----------------------------------------------------------------------------------


def test_a_run_that_goes_on_has_levels_and_shows_the_one_asked_for(run, tmp_path: Path) -> None:
    rows, _ = clumps(seed=0, parts=True)
    np.save(tmp_path / "more.npy", rows[:200])
    arguments = ["discover", str(tmp_path / "more.npy"), "--from", str(run.out), "--quiet"]
    assert main([*arguments, "--out", str(tmp_path / "next"), "--level", "coarse"]) == 0
    later = ttgcd.load(tmp_path / "next")
    consistent(later)
    assert content(later.out)["levels"]["shown"] == "coarse"
    assert "level coarse: 200 samples" in later.text()


def test_a_run_made_before_there_were_levels_has_them_when_asked(run, tmp_path: Path) -> None:
    old = run.save(tmp_path / "old").out
    (old / "state" / "levels.npz").unlink()
    said = content(old)
    del said["levels"]
    (old / "categories.json").write_text(json.dumps(said))
    columns = ["coarse", "coarse_name", "fine", "fine_name"]
    table = pq.read_table(old / "assignments.parquet").drop_columns(columns)
    pq.write_table(table, old / "assignments.parquet")
    for level in ("coarse", "fine", 5):
        assert ttgcd.load(old).at(level).labels.tolist() == run.at(level).labels.tolist()


def test_a_run_that_lost_its_features_says_that_it_has_no_levels(run, tmp_path: Path) -> None:
    poor = run.save(tmp_path / "poor").out
    for name in ("levels.npz", "features.npy"):
        (poor / "state" / name).unlink()
    with pytest.raises(InputError, match="no level but the found one"):
        ttgcd.load(poor).at("coarse")
    (poor / "state" / "levels.npz").write_bytes(b"no such thing")
    with pytest.raises(InputError, match=r"levels\.npz' is damaged"):
        ttgcd.load(poor).at("coarse")


@pytest.mark.parametrize("preset", ["paper", "kmeans"])
def test_other_methods_have_levels_too(preset: str) -> None:
    given = {"preset": "paper"} if preset == "paper" else {"method": "kmeans", "changes": {}}
    found = found_in(**given)
    consistent(found)
    assert len(found.at("coarse")) < len(found.at("found"))


def test_a_run_without_names_has_levels_of_groups(tmp_path: Path) -> None:
    found = found_in(tmp_path / "found", known=None, anchors=None, novel=12)
    consistent(found)
    coarse = found.at("coarse")
    assert len(coarse) == CLUMPS and {g.kind for g in coarse.groups} == {"novel"}
    assert Page.of(found.out).data["levels"]["offered"][0]["count"] == CLUMPS


# -- two hills ------------------------------------------------------------------------------------


class Hilly(Scout):
    """The default method, with a curve of two hills."""

    name: ClassVar[str] = "hilly"
    hills: ClassVar[tuple[int, ...]] = (6, 27)

    def count_curve(self) -> Curve:
        k = np.unique(np.round(2 * 1.15 ** np.arange(30)))
        bumps = (np.exp(-((np.log(k / hill) / 0.3) ** 2)) for hill in self.hills)
        return Curve(k, sum(bumps, np.zeros(len(k))))


class Fewer(Hilly):
    """One of the hills is at what is found."""

    name: ClassVar[str] = "fewer"
    hills: ClassVar[tuple[int, ...]] = (5, 12)


def test_where_two_numbers_are_honest_both_are_said_and_offered(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, method = tmp_path / "found", f"{__name__}:Hilly"
    assert main([*files, "--out", str(out), "--method", method]) == 0
    said = capsys.readouterr().out
    low, high = content(out)["levels"]["hills"]
    assert 5 <= low <= 7 and 24 <= high <= 31
    honest = f"bout {low} and {high} categories describe these images equally well"
    assert f"note: a{honest}: this run has 12; of the other levels, coarse has {low}" in said
    assert f"other levels: {low} coarse" in said
    page = Page.of(out)
    assert f"A{honest}" in page.words("p")  # beside the levels, not among the notes alone
    assert page.data["levels"]["hills"] == [low, high]
    assert len(page.data["curve"]) == len(Hilly().count_curve().clusters)
    offered = {level["name"]: level["count"] for level in page.data["levels"]["offered"]}
    assert offered == {"coarse": low, "fine": 13}  # no more than the geometry supports


def test_where_the_count_is_on_a_hill_the_other_one_is_a_level(tmp_path: Path) -> None:
    found = found_in(tmp_path / "found", method=f"{__name__}:Fewer")
    low, high = content(found.out)["levels"]["hills"]
    assert high in (11, 12, 13, 14) and len(found.at("coarse")) == low < 7
    assert any("this is one of them; of the other levels, coarse has" in n for n in found.notes)


def test_one_hill_is_not_worth_a_word(run) -> None:
    assert not any("equally well" in note for note in run.notes)
    assert "note" not in content(run.out)["levels"]
