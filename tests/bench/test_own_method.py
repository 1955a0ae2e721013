"""The example of docs/own-method.md, executed as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ttgcd.bench.results import read_results
from ttgcd.cli import main

DOCUMENT = Path(__file__).parents[2] / "docs" / "own-method.md"


@pytest.fixture
def example():
    return re.search(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S)[1]


def test_it_is_short(example):
    begun = example.index("@dataclass")
    assert len([line for line in example[begun:].splitlines() if line.strip()]) < 40


def test_it_gets_its_rows_and_its_line_in_the_table(
    example, cifar, model, tmp_path, monkeypatch, capsys
):
    (tmp_path / "leaders.py").write_text(example)
    monkeypatch.chdir(tmp_path)
    command = re.search(r"```bash\nttgcd (.*?)\n```", DOCUMENT.read_text(encoding="utf-8"))[1]
    command = command.replace("--data DATA", f"--data {cifar} --model {model} --seeds 0,1")
    assert main([*command.split(), "--streams", "fog,snow", "--threads", "1"]) == 0
    rows = read_results(tmp_path / "results" / "main.jsonl").rows
    mine = [row for row in rows if row["label"] == "Leaders"]
    assert len(mine) == 4 and mine[0]["config"] == {"rate": 0.05}
    assert mine[0]["metrics"]["novelty_auroc"] is not None
    assert re.search(r"^Leaders +arrival, 1 pass", capsys.readouterr().out, re.M)
