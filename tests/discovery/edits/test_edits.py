"""Edits of a finished run, one by one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.discovery.edits.runs import (
    answers,
    categories,
    contents,
    finished_run,
    look_alikes,
)
from ttgcd.discovery.edits import Edit, EditedFolder
from ttgcd.discovery.edits.replay import FIRST_SPLIT_ID
from ttgcd.errors import InputError


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return finished_run(tmp_path / "out", n=40)


def members(out: Path, category: int) -> list[str]:
    return [image for image, answer in answers(out).items() if answer[0] == category]


def test_a_new_name_stands_in_the_table_and_among_the_categories(out: Path) -> None:
    EditedFolder(out).edit(Edit("rename", category=3, name="moose"))
    assert categories(out)[3]["name"] == "moose"
    assert {a[2] for a in answers(out).values() if a[0] == 3} == {"moose"}


def test_a_merged_category_is_an_alias_of_the_other(out: Path) -> None:
    both = sorted(members(out, 2) + members(out, 4))
    EditedFolder(out).edit(Edit("merge", category=4, into=2))
    assert sorted(members(out, 2)) == both and not members(out, 4)
    assert categories(out)[4]["merged_into"] == 2 and categories(out)[4]["count"] == 0
    assert categories(out)[2]["count"] == len(both)


def test_an_edit_of_a_merged_category_goes_to_the_one_it_was_merged_into(out: Path) -> None:
    folder = EditedFolder(out)
    folder.edit(Edit("merge", category=4, into=2))
    folder.edit(Edit("rename", category=4, name="moose"))
    assert categories(out)[2]["name"] == "moose"


def test_marking_gives_a_new_category_to_the_known_class_that_it_is(out: Path) -> None:
    EditedFolder(out).edit(Edit("mark", category=3, into=1))
    assert not members(out, 3)
    assert {a for a in answers(out).values() if a[0] == 1} == {(1, "known", "dog")}


def test_a_split_takes_the_picked_images_into_a_new_category(out: Path) -> None:
    picked = tuple(members(out, 3)[:2])
    EditedFolder(out).edit(Edit("split", category=3, images=picked, name="calf"))
    new = FIRST_SPLIT_ID + 1
    assert members(out, new) == list(picked)
    record = categories(out)[new]
    assert (record["name"], record["count"], record["split_from"]) == ("calf", 2, 3)
    assert set(record["exemplars"]) == set(picked)


def test_moved_images_leave_the_examples_of_their_old_category(out: Path) -> None:
    image = categories(out)[3]["exemplars"][0]
    EditedFolder(out).edit(Edit("move", images=(image,), into=0))
    assert answers(out)[image] == (0, "known", "cat")
    assert image not in categories(out)[3]["exemplars"]


def test_counts_always_add_up_to_the_table(out: Path) -> None:
    folder = EditedFolder(out)
    folder.edit(Edit("move", images=tuple(members(out, 2)[:3]), into=3))
    folder.edit(Edit("split", category=3, images=tuple(members(out, 3)[:2])))
    folder.edit(Edit("merge", category=4, into=FIRST_SPLIT_ID + 2))
    counts = Counter(answer[0] for answer in answers(out).values())
    assert {c: r["count"] for c, r in categories(out).items() if r["count"]} == dict(counts)


def test_hiding_marks_the_category_and_leaves_its_images(out: Path) -> None:
    before = answers(out)
    EditedFolder(out).edit(Edit("hide", category=3))
    assert categories(out)[3]["hidden"] is True and answers(out) == before


def test_undo_takes_back_the_last_edit_and_redo_makes_it_again(out: Path) -> None:
    folder = EditedFolder(out)
    folder.edit(Edit("rename", category=3, name="moose"))
    named = contents(out)
    folder.edit(Edit("hide", category=2))
    both = contents(out)
    assert folder.undo().op == "hide" and contents(out) == named
    assert folder.redo().op == "hide" and contents(out) == both


def test_any_edit_can_be_undone_and_what_rested_on_it_is_kept_and_reported(out: Path) -> None:
    folder = EditedFolder(out)
    folder.edit(Edit("split", category=3, images=tuple(members(out, 3)[:1])))
    folder.edit(Edit("rename", category=FIRST_SPLIT_ID + 1, name="calf"))
    folder.undo(1)
    assert "no category" in folder.unapplied()[2] and len(folder.log()) == 3
    folder.redo(1)
    assert not folder.unapplied() and categories(out)[FIRST_SPLIT_ID + 1]["name"] == "calf"


def test_undo_of_everything_gives_the_first_files_back_byte_for_byte(out: Path) -> None:
    first, folder = contents(out), EditedFolder(out)
    folder.edit(Edit("merge", category=4, into=2), Edit("rename", category=2, name="moose"))
    folder.edit(Edit("move", images=("img-00.png",), into=1))
    assert contents(out) != first
    for _ in range(3):
        folder.undo()
    assert contents(out) == first
    with pytest.raises(InputError, match="nothing to undo"):
        folder.undo()


def test_files_that_a_crash_left_behind_the_log_follow_when_somebody_looks(out: Path) -> None:
    before = contents(out)
    folder = EditedFolder(out)
    folder.edit(Edit("rename", category=3, name="moose"))
    after = contents(out)
    marker = out / "state" / "unedited" / "follows.json"
    marker.unlink()
    for name, data in before.items():  # as if killed right after the log was written
        (out / name).write_bytes(data)
    assert EditedFolder(out).follow()
    assert contents(out) == after and not EditedFolder(out).follow()


@pytest.mark.parametrize(
    "edit, words",
    [
        (Edit("rename", category=99, name="x"), "no category 99"),
        (Edit("rename", category=3, name="DOG"), "taken by category 1"),
        (Edit("rename", category=0, name="lion"), "known class 'cat'"),
        (Edit("merge", category=3, into=3), "with itself"),
        (Edit("merge", category=0, into=3), "known class 'cat'"),
        (Edit("mark", category=3, into=2), "not a known class"),
        (Edit("move", images=("nowhere.png",), into=2), "no image 'nowhere.png'"),
        (Edit("split", category=3, images=("img-99.png",)), "no image 'img-99.png'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line_and_changes_nothing(
    out: Path, edit: Edit, words: str
) -> None:
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    with pytest.raises(InputError, match=words) as caught:
        EditedFolder(out).edit(Edit("hide", category=2), edit)
    assert "\n" not in str(caught.value)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before


def test_a_split_of_strangers_or_of_everything_is_refused(out: Path) -> None:
    stranger = members(out, 2)[0]
    with pytest.raises(InputError, match="is not in category 3"):
        EditedFolder(out).edit(Edit("split", category=3, images=(stranger,)))
    with pytest.raises(InputError, match="nothing is left"):
        EditedFolder(out).edit(Edit("split", category=3, images=tuple(members(out, 3))))


@pytest.mark.parametrize("how", ["changed", "lost", "doubled", "torn"])
def test_a_damaged_log_line_is_named_and_nothing_is_touched(out: Path, how: str) -> None:
    folder = EditedFolder(out)
    for name in ("elk", "moose", "deer"):
        folder.edit(Edit("rename", category=3, name=name))
    path = out / "edits.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = {
        "changed": [*lines[:2], lines[2].replace(b"moose", b"goose"), lines[3]],
        "lost": [*lines[:2], lines[3]],
        "doubled": [*lines[:3], *lines[2:]],
        "torn": [*lines[:3], lines[3][:-9]],
    }[how]
    path.write_bytes(b"".join(damaged))
    before = contents(out)
    with pytest.raises(InputError, match=r"edits.jsonl.*line.* is damaged"):
        folder.edit(Edit("hide", category=2))
    assert contents(out) == before


def test_a_log_of_a_newer_format_is_refused(out: Path) -> None:
    from ttgcd.discovery.edits.log import _line

    (out / "edits.jsonl").write_bytes(_line({"format": "ttgcd.edits/2"}, ""))
    with pytest.raises(InputError, match="newer ttgcd"):
        EditedFolder(out).log()


def test_the_download_of_the_report_page_is_applied_as_a_whole(out: Path, tmp_path: Path) -> None:
    page = tmp_path / "edits.json"
    image = members(out, 4)[0]
    edits = [
        {"op": "rename", "category": 3, "name": "moose"},
        {"op": "merge", "category": 4, "into": 2},
        {"op": "move", "images": [image], "into": 0},
        {"op": "hide", "category": 2},
    ]
    page.write_text(json.dumps({"format": "ttgcd.edits/1", "edits": edits}), "utf-8")
    EditedFolder(out).apply_file(page)
    assert categories(out)[3]["name"] == "moose" and answers(out)[image][0] == 0
    assert [edit.op for edit in EditedFolder(out).log()] == ["rename", "merge", "move", "hide"]


@pytest.mark.parametrize(
    "content, words",
    [
        ("{", "not JSON"),
        ("[]", "not a file of edits"),
        ('{"format": "ttgcd.edits/1", "edits": []}', "no edits"),
        ('{"format": "ttgcd.edits/1", "edits": [{"op": "burn"}]}', "edit 1: unknown op"),
        ('{"format": "ttgcd.edits/1", "edits": [{"op": "hide"}]}', "needs 'category'"),
        ('{"format": "ttgcd.edits/1", "edits": [{"op": "hide", "category": "9"}]}', "whole number"),
        (
            '{"format": "ttgcd.edits/1", "edits": [{"op": "rename", "category": 3, "name": " "}]}',
            "name is empty",
        ),
        (
            '{"format": "ttgcd.edits/1", "edits": [{"op": "move", "into": 3, "images": "a"}]}',
            "list of image ids",
        ),
    ],
)
def test_a_file_of_edits_that_makes_no_sense_is_refused(
    out: Path, tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "edits.json").write_text(content, "utf-8")
    with pytest.raises(InputError, match=words):
        EditedFolder(out).apply_file(tmp_path / "edits.json")
    assert not (out / "edits.jsonl").exists()


def test_an_unfinished_run_or_another_folder_is_not_edited(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no finished run"):
        EditedFolder(tmp_path)


# -- corrections teach --------------------------------------------------------------------------


def test_the_look_alikes_of_a_split_image_go_with_it(out: Path) -> None:
    first = contents(out)
    herd = members(out, 3)[:5]
    rest = members(out, 3)[5:]
    look_alikes(out, [herd, rest])
    EditedFolder(out).edit(Edit("split", category=3, images=(herd[0],), name="calf"))
    assert members(out, FIRST_SPLIT_ID + 1) == herd and members(out, 3) == rest
    assert categories(out)[FIRST_SPLIT_ID + 1]["count"] == 5
    EditedFolder(out).undo()
    assert contents(out) == first


def test_what_was_confirmed_stays_when_its_neighbours_go(out: Path) -> None:
    herd = members(out, 3)[:5]
    look_alikes(out, [herd, members(out, 3)[5:]])
    folder = EditedFolder(out)
    folder.edit(Edit("move", images=(herd[1],), into=3))  # it is where it belongs
    folder.edit(Edit("split", category=3, images=(herd[0], herd[2], herd[3])))
    assert herd[1] in members(out, 3) and herd[4] in members(out, FIRST_SPLIT_ID + 2)


def test_a_taught_answer_can_itself_be_edited_and_survives_replay(out: Path) -> None:
    herd = members(out, 3)[:5]
    look_alikes(out, [herd, members(out, 3)[5:]])
    folder = EditedFolder(out)
    folder.edit(Edit("split", category=3, images=(herd[0],)))
    folder.edit(Edit("split", category=FIRST_SPLIT_ID + 1, images=(herd[4],), name="odd one"))
    after = contents(out)
    assert herd[4] in members(out, FIRST_SPLIT_ID + 2)
    (out / "state" / "unedited" / "follows.json").unlink()
    folder.follow()
    assert contents(out) == after and not folder.unapplied()


def test_features_of_another_run_teach_nothing(out: Path) -> None:
    import numpy as np

    np.save(out / "state" / "features.npy", np.ones((3, 4), np.float16))
    EditedFolder(out).edit(Edit("merge", category=4, into=2))
    assert not members(out, 4)


def test_a_category_is_split_in_two_by_what_its_images_look_like(out: Path) -> None:
    herd = members(out, 3)
    look_alikes(out, [herd[:2], herd[2:]])
    folder = EditedFolder(out)
    folder.edit(folder.in_two(3))
    assert members(out, FIRST_SPLIT_ID + 1) == herd[:2] and members(out, 3) == herd[2:]


def test_without_features_a_category_is_split_by_hand(out: Path) -> None:
    with pytest.raises(InputError, match="pick the images"):
        EditedFolder(out).in_two(3)
