"""assignments.parquet: rows in stream order, revisions, parts that leave no trace."""

from __future__ import annotations

import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttgcd.engines.table import AssignmentTable
from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.streams.base import Batch


def batch(start: int, count: int) -> Batch:
    ids = tuple(f"s{i}" for i in range(start, start + count))
    return Batch(ids, start, tuple(range(start, start + count)), start + count)


def rows(start: int, categories: list[int], final: bool = True) -> Answer:
    return Answer.make(start, np.array(categories), np.linspace(0, 1, len(categories)), final=final)


def read(table: AssignmentTable, folder) -> list[dict]:
    table.finish(folder / "assignments.parquet")
    return pq.read_table(folder / "assignments.parquet").to_pylist()


def test_rows_have_names_kinds_batches_and_revisions(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat", "dog"))
    table.write(batch(0, 2), rows(0, [0, 1], final=False))
    table.write(batch(2, 2), rows(0, [0, 3, 2, 1]))
    found = read(table, tmp_path)
    assert [r["id"] for r in found] == ["s0", "s1", "s2", "s3"]
    assert [r["category"] for r in found] == [0, 3, 2, 1]
    assert [r["kind"] for r in found] == ["known", "novel", "novel", "known"]
    assert [r["name"] for r in found] == ["cat", "novel 2", "novel 1", "dog"]
    assert [r["batch"] for r in found] == [0, 0, 1, 1]
    assert [r["revised"] for r in found] == [False, True, False, False]
    assert list(found[0]) == [
        "id", "category", "kind", "name", "score", "margin", "batch", "revised", "novelty",
    ]  # fmt: skip


def test_revised_compares_with_the_first_answer_not_the_last_but_one(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat", "dog"))
    table.write(batch(0, 2), rows(0, [0, 0], final=False))
    table.write(None, rows(0, [1, 1], final=False))
    table.write(None, rows(0, [0, 1]))
    assert [r["revised"] for r in read(table, tmp_path)] == [False, True]


def test_the_first_of_two_answers_in_one_write_is_the_arrival(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat", "dog"))
    both = Answer.concat([rows(0, [0, 1], final=False), rows(0, [1, 1])])
    table.write(batch(0, 2), both)
    found = read(table, tmp_path)
    assert [r["category"] for r in found] == [1, 1]
    assert [r["revised"] for r in found] == [True, False]


def test_memory_does_not_grow_with_the_stream(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat",), rows_per_group=50)
    most = 0
    for start in range(0, 2000, 20):
        table.write(batch(start, 20), rows(start, [0] * 20))
        most = max(most, len(table._ids))
    assert most <= 50
    assert len(read(table, tmp_path)) == 2000


def test_rows_that_may_be_revised_stay_in_memory(tmp_path):
    table = AssignmentTable(tmp_path / "parts", ("cat", "dog"), rows_per_group=10)
    table.write(batch(0, 30), rows(0, [0] * 30, final=False))
    table.write(batch(30, 30), rows(30, [0] * 30))
    assert not (tmp_path / "parts").exists()
    table.write(None, rows(0, [1] * 30))
    assert [r["category"] for r in read(table, tmp_path)] == [1] * 30 + [0] * 30


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    closes=st.sets(st.integers(0, 11)),
    resumes=st.sets(st.integers(0, 11)),
)
def test_parts_and_resumes_leave_no_trace(tmp_path_factory, sizes, closes, resumes):
    folder = tmp_path_factory.mktemp("table")

    def fill(name: str, closes: set[int], resumes: set[int]) -> bytes:
        table = AssignmentTable(folder / name, ("cat", "dog"), rows_per_group=7)
        start = 0
        for number, size in enumerate(sizes):
            categories = [(start + i) % 4 for i in range(size)]
            table.write(batch(start, size), rows(start, categories, final=number % 3 != 0))
            if number % 3 == 1:
                before = sizes[number - 1]
                table.write(None, rows(start - before, [1] * before))
            start += size
            if number in closes:
                table.close_part()
            if number in resumes:
                state = table.state()
                table.write(batch(start, 3), rows(start, [0, 1, 2]))  # lost with the process
                table.close_part()
                table = AssignmentTable(folder / name, ("cat", "dog"), rows_per_group=7)
                table.load(state)
        path = folder / f"{name}.parquet"
        table.finish(path)
        return path.read_bytes()

    assert fill("plain", set(), set()) == fill("broken", closes, resumes)


def test_a_damaged_or_missing_part_is_refused(tmp_path):
    table = AssignmentTable(tmp_path, ("cat",))
    table.write(batch(0, 5), rows(0, [0] * 5))
    table.close_part()
    state = table.state()
    part = tmp_path / "part-000000.parquet"
    data = part.read_bytes()
    part.write_bytes(data[:-1] + b"?")
    with pytest.raises(InputError, match="damaged"):
        AssignmentTable(tmp_path, ("cat",)).load(state)
    os.unlink(part)
    with pytest.raises(InputError, match="overwrite=True"):
        AssignmentTable(tmp_path, ("cat",)).load(state)


def test_a_method_that_breaks_its_word_is_caught(tmp_path):
    table = AssignmentTable(tmp_path, ("cat",))
    table.write(batch(0, 2), rows(0, [0, 0]))
    with pytest.raises(RuntimeError, match="final"):
        table.write(None, rows(0, [0]))
    with pytest.raises(RuntimeError, match="arrives where 2"):
        table.write(batch(1, 1), rows(1, [0]))
    with pytest.raises(RuntimeError, match="unknown"):
        table.write(None, rows(2, [0]))
    table.write(batch(2, 2), rows(2, [0]))
    with pytest.raises(RuntimeError, match="no answer for sample 's3'"):
        table.finish(tmp_path / "assignments.parquet")


def test_arriving_is_linear_in_what_waits(tmp_path):
    """Rows that wait for a last word are not copied again for every batch."""
    table = AssignmentTable(tmp_path / "parts", ("cat",))
    moves, column = 0, None
    for start in range(4000):
        table.write(batch(start, 1), rows(start, [0], final=False))
        moves += table._rows["category"] is not column
        column = table._rows["category"]
    assert moves <= 14
