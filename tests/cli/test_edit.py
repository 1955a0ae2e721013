"""The command ttgcd edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.discovery.edits.runs import answers, categories, contents, finished_run
from ttgcd.cli import main


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(finished_run(tmp_path / "out", n=40))


def edit(out: str, *words: str) -> int:
    return main(["edit", out, *words])


def test_every_kind_of_edit_by_command(out: str, tmp_path: Path) -> None:
    images = [image for image, answer in answers(Path(out)).items() if answer[0] == 3]
    (tmp_path / "list.txt").write_text("\n".join(images[1:3]))
    assert edit(out, "rename", "3", "red", "fox") == 0
    assert edit(out, "split", "3", images[0], "--name", "cub") == 0
    assert edit(out, "move", "0", f"@{tmp_path / 'list.txt'}") == 0
    assert edit(out, "mark", "4", "Dog") == 0
    assert edit(out, "hide", "2") == 0
    found = categories(Path(out))
    assert found[3]["name"] == "red fox" and found[4]["merged_into"] == 1 and found[2]["hidden"]
    assert found[1_000_002]["count"] == 1 and answers(Path(out))[images[1]][0] == 0


def test_the_log_tells_what_is_undone(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(Path(out))
    edit(out, "merge", "4", "3")
    edit(out, "undo")
    assert contents(Path(out)) == before
    capsys.readouterr()
    edit(out, "log")
    first, second = capsys.readouterr().out.splitlines()
    assert "(id 4) into" in first and "(undone)" in first and "undo edit 1" in second
    edit(out, "redo")
    assert categories(Path(out))[4]["merged_into"] == 3


@pytest.mark.parametrize(
    "words, said",
    [
        (["mark", "3", "wolf"], "no known class 'wolf'"),
        (["rename", "3", ""], "name is empty"),
        (["merge", "3", "3"], "with itself"),
        (["undo"], "nothing to undo"),
        (["redo", "4"], "not undone"),
        (["apply", "nowhere.json"], "cannot read"),
        (["split", "3"], "--in-two"),
        (["hide", "wolf"], "no category 'wolf'"),
        (["merge", "nobody", "3"], "no category 'nobody'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    out: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit(out, *words) == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1


def test_a_category_is_taken_by_its_name_or_its_id_everywhere(out: str, tmp_path: Path) -> None:
    names = {number: record["name"] for number, record in categories(Path(out)).items()}
    images = [image for image, answer in answers(Path(out)).items() if answer[0] == 3]
    assert edit(out, "rename", names[3].upper(), "red fox") == 0
    assert edit(out, "split", "red fox", images[0], "--name", "cub") == 0
    assert edit(out, "move", "red fox", images[0]) == 0
    assert edit(out, "merge", "cub", "red fox") == 0
    assert edit(out, "mark", names[4], "1") == 0
    assert edit(out, "hide", "red fox", "0") == 0
    found = categories(Path(out))
    assert found[3]["name"] == "red fox" and found[1_000_002]["merged_into"] == 3
    assert found[4]["merged_into"] == 1 and found[3]["hidden"] and found[0]["hidden"]


def test_every_edit_says_in_names_what_it_changed(
    out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, other = (categories(Path(out))[number]["name"] for number in (3, 4))
    count = categories(Path(out))[4]["count"]
    edit(out, "rename", name, "fox")
    assert f"edit 1: rename '{name}' (id 3) to 'fox'\nno image moved" in capsys.readouterr().out
    edit(out, "merge", "4", "fox")
    said = capsys.readouterr().out
    assert f"edit 2: merge '{other}' (id 4) into 'fox' (id 3)" in said
    assert f"{count} images are in another category now" in said
    edit(out, "undo")
    assert f"edit 3: undo edit 2: merge '{other}' (id 4) into 'fox' (id 3)" in (
        capsys.readouterr().out
    )
    edit(out, "log")
    first, second, _ = capsys.readouterr().out.splitlines()
    assert f"rename '{name}' (id 3) to 'fox'" in first and "(undone)" in second


def test_a_number_that_is_an_id_and_in_a_name_is_an_id_and_says_so(
    out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trap of "novel 1" with the id 3."""
    assert edit(out, "rename", "3", "novel 4") == 0
    assert edit(out, "rename", "4", "moose") == 0
    assert "note: 4 was taken for an id; for 'novel 4' (id 3) write" in capsys.readouterr().out
    assert categories(Path(out))[4]["name"] == "moose"


def test_apply_tells_every_edit_of_the_file(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edits = [
        {"op": "rename", "category": 3, "name": "fox"},
        {"op": "merge", "category": 4, "into": 3},
        {"op": "hide", "category": 0},
    ]
    file = tmp_path / "edits.json"
    file.write_text(json.dumps({"format": "ttgcd.edits/1", "edits": edits}))
    assert edit(out, "apply", str(file)) == 0
    said = capsys.readouterr().out
    assert [f"edit {number}: " in said for number in (1, 2, 3)] == [True] * 3
    assert "into 'fox' (id 3)" in said


def test_a_suggestion_is_taken_for_its_category(out: str) -> None:
    file = Path(out) / "categories.json"
    record = json.loads(file.read_text())
    record["categories"][3]["good_name"] = "moose"
    file.write_text(json.dumps(record))
    assert edit(out, "rename", "moose?", "elk") == 0
    assert categories(Path(out))[3]["name"] == "elk"
