"""The command ttgcd edit."""

from __future__ import annotations

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
    assert "merge 4 into 3" in first and "(undone)" in first and "undo edit 1" in second
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
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    out: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit(out, *words) == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1
