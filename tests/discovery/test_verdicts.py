"""The verdict on runs made for it, through the front door: the command, and the files it leaves.

The runs are those of ``benchmarks/verdicts.py``, which prints what each verdict rests on.
"""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from benchmarks.verdicts import RUNS, Run, command
from ttgcd.cli import main
from ttgcd.report.verdict import Verdict
from ttgcd.wording import as_options

DOCS = Path(__file__).parents[2] / "docs" / "verdicts.md"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pictures are, which the runs share."""
    return tmp_path_factory.mktemp("verdicts")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.about)
def test_the_verdict_is_right_in_terminal_report_and_record(
    run: Run, place: Path, tmp_path: Path, capsys
) -> None:
    out = tmp_path / "out"
    assert main(command(run, place, out)) == 0
    record = json.loads((out / "run.json").read_text())["verdict"]
    assert record["verdict"] == run.expected.value, record["sentence"]
    said = capsys.readouterr().out
    assert said.startswith(f"verdict: {as_options(record['sentence'])}\n")
    assert as_options(record["advice"]) in said and record["page"] in said
    page = html.unescape((out / "report.html").read_text())
    assert as_options(record["sentence"]) in page and record["page"] in page
    assert f'class="verdict {record["level"]}"' in page


def test_there_are_at_least_twenty_runs_and_none_is_there_twice() -> None:
    assert len({run.about for run in RUNS}) == len(RUNS) >= 20


def test_the_documentation_has_a_section_for_each_verdict() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert all(f"{{ #{verdict.value} }}" in text for verdict in Verdict)
