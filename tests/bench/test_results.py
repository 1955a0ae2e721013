"""Rows on disk: never lost, never twice, never half."""

from __future__ import annotations

import json

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.results import Job, open_results, read_results
from ttgcd.errors import InputError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "main.jsonl"
    with open_results(path) as results:
        for seed in range(3):
            assert results.append(make_row(seed=seed))
    return path


def test_rows_come_back(file):
    assert [row["seed"] for row in read_results(file).rows] == [0, 1, 2]


def test_a_row_is_written_once(file):
    with open_results(file) as results:
        assert not results.append(make_row(seed=1))
    assert len(file.read_text().splitlines()) == 3


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_cut_last_line_is_dropped_said_and_repaired(file, cut):
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    contents = read_results(file)
    complete = cut == 1  # only the line's end is missing
    assert len(contents.rows) == (3 if complete else 2)
    assert bool(contents.notes) != complete
    with open_results(file) as results:
        results.append(make_row(seed=2))
    assert file.read_bytes() == whole


def test_a_broken_line_in_the_middle_is_an_error_and_nothing_is_lost(file):
    lines = file.read_text().splitlines()
    lines[1] = lines[1][:40]
    file.write_text("\n".join(lines) + "\n")
    before = file.read_bytes()
    with pytest.raises(InputError, match="line 2: not a result row"):
        read_results(file)
    with pytest.raises(InputError, match="line 2"), open_results(file):
        pass
    assert file.read_bytes() == before


def test_a_row_that_occurs_twice_counts_once(file):
    file.write_text(file.read_text() + file.read_text().splitlines()[0] + "\n")
    contents = read_results(file)
    assert len(contents.rows) == 3
    assert contents.notes == ["main.jsonl, line 4: ignored, occurs before"]


def test_rows_of_another_format_are_refused(file):
    file.write_text(json.dumps({**make_row(), "format": 99}) + "\n")
    with pytest.raises(InputError, match="format 99"):
        read_results(file)


def test_not_a_number_is_null(tmp_path):
    with open_results(tmp_path / "x.jsonl") as results:
        results.append(make_row(metrics={"novel": float("nan"), "all": 1.0}))
    assert '"novel": null' in (tmp_path / "x.jsonl").read_text()


def test_two_writers_are_refused(file):
    with open_results(file), pytest.raises(InputError, match="another process"), open_results(file):
        pass


def test_what_decides_a_run():
    job = Job("main", "PACT", "cifar10-c", "fog", "pact", "mini", 0, config={"lr": 0.1})
    same = Job("rates", "eta 0.05", "cifar10-c", "fog", "pact", "mini", 0, config={"lr": 0.1})
    assert job.run_id == same.run_id  # measured once for both experiments
    for change in ({"seed": 1}, {"limit": 10}, {"config": {"lr": 0.2}}, {"novel": "estimated"}):
        other = Job(**{**job.__dict__, **change})
        assert other.run_id != job.run_id
