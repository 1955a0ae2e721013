"""Revisions of rows that are on disk, and aliases of merged categories."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.engines.test_table import batch, read, rows
from ttgcd.engines.table import AssignmentTable, resolve_aliases
from ttgcd.methods.answer import Answer, Merged


def test_rows_on_disk_are_revised_at_the_end(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat", "dog"), rows_per_group=4, most_open=8)
    for start in range(0, 40, 4):
        table.write(batch(start, 4), rows(start, [0] * 4, final=False))
    assert len(table._ids) < 8
    table.write(None, rows(0, [1] * 20, final=False))
    table.write(None, rows(10, [3] * 30))
    found = read(table, tmp_path)
    assert [r["category"] for r in found] == [1] * 10 + [3] * 30
    assert all(r["revised"] for r in found)


def test_a_revision_of_a_final_row_on_disk_is_caught(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat",), rows_per_group=4)
    table.write(batch(0, 4), rows(0, [0] * 4))
    assert not table._ids
    table.write(None, rows(0, [0]))
    with pytest.raises(RuntimeError, match="final"):
        table.finish(tmp_path / "assignments.parquet")


def test_merged_categories_get_the_id_they_were_merged_into(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat",))
    table.write(batch(0, 4), rows(0, [1, 2, 3, 0], final=True))
    merged = Answer.concat([Answer.empty()])
    from dataclasses import replace

    table.write(None, replace(merged, events=(Merged(3, 2, 4), Merged(2, 1, 5))))
    state = table.state()
    again = AssignmentTable(tmp_path / "parts", ("cat",))
    again.load(state)
    found = read(again, tmp_path)
    assert [r["category"] for r in found] == [1, 1, 1, 0]
    assert [r["name"] for r in found] == ["novel 1", "novel 1", "novel 1", "cat"]


def test_aliases_are_followed_to_the_end():
    found = resolve_aliases(np.array([5, 4, 3, 0]), {5: 4, 4: 3})
    assert found.tolist() == [3, 3, 3, 0]


def test_memory_stays_bounded_while_every_row_is_revised(tmp_path):
    """One open row at the front must not pin the rows behind it, nor must open ones pile up."""
    peaks = []
    for count in (40_960, 163_840):
        table = AssignmentTable(
            tmp_path / str(count), ("cat",), rows_per_group=2048, most_open=4096
        )
        table._revisions._most = 4096
        tracemalloc.start()
        for start in range(0, count, 512):
            table.write(batch(start, 512), rows(start, [0] * 512, final=False))
        for start in range(0, count, 2048):
            table.write(None, rows(start, [1] * min(2048, count - start)))
        path = tmp_path / f"{count}.parquet"
        table.finish(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert set(pq.read_table(path).column("category").to_pylist()) == {1}
    assert peaks[1] < 1.5 * peaks[0]


def test_rows_that_went_to_disk_unanswered_remember_their_first_answer(tmp_path):
    """A method may keep silent while its warm-up fills; a checkpoint must leave no trace."""
    found = []
    for name, closes in (("plain", False), ("closed", True)):
        table = AssignmentTable(tmp_path / name, ("cat", "dog"))
        table.write(batch(0, 4), Answer.empty())
        if closes:
            table.close_part()
        table.write(batch(4, 2), rows(0, [1, 1, 2, 2, 0, 0], final=False))
        if closes:
            table.close_part()
        table.write(None, rows(0, [1, 2, 2, 1, 0, 1]))
        table.finish(tmp_path / f"{name}.parquet")
        found.append((tmp_path / f"{name}.parquet").read_bytes())
    assert found[0] == found[1]
    revised = pq.read_table(tmp_path / "closed.parquet").column("revised").to_pylist()
    assert revised == [False, True, False, True, False, True]
