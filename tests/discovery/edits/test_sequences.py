"""Properties of any sequence of edits."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.discovery.edits.runs import contents, finished_run, records, rows
from ttgcd.discovery.edits import Edit, EditedFolder, apply
from ttgcd.discovery.edits.handover import carry_over
from ttgcd.discovery.edits.log import EditLog, active
from ttgcd.discovery.edits.replay import FIRST_SPLIT_ID
from ttgcd.errors import InputError

_CATEGORY = st.integers(0, 5) | st.integers(FIRST_SPLIT_ID + 1, FIRST_SPLIT_ID + 4)
_IMAGES = st.lists(st.integers(0, 12).map("img-{:02d}.png".format), min_size=1, max_size=4).map(
    lambda images: tuple(dict.fromkeys(images))
)
_NAME = st.sampled_from(["moose", "Moose", "elk", "dog", "Füchse", "split 2", "牛"])
EDITS = st.one_of(
    st.builds(Edit, op=st.just("rename"), category=_CATEGORY, name=_NAME),
    st.builds(Edit, op=st.just("merge"), category=_CATEGORY, into=_CATEGORY),
    st.builds(Edit, op=st.just("mark"), category=_CATEGORY, into=_CATEGORY),
    st.builds(Edit, op=st.just("split"), category=_CATEGORY, images=_IMAGES),
    st.builds(Edit, op=st.just("move"), into=_CATEGORY, images=_IMAGES),
    st.builds(Edit, op=st.just("hide"), category=_CATEGORY),
)
_STEPS = st.lists(
    EDITS | st.just("undo") | st.just("redo") | st.tuples(st.just("undo"), st.integers(1, 9)),
    max_size=12,
)


@given(_STEPS)
@settings(max_examples=60, deadline=None)
def test_undo_of_everything_gives_the_first_bytes_and_replay_is_what_the_files_say(
    steps: list[Any],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = finished_run(Path(folder) / "out")
        first, edited = contents(out), EditedFolder(out)
        made = 0
        for step in steps:
            before = contents(out)
            try:
                if isinstance(step, Edit):
                    edited.edit(step)
                elif isinstance(step, str):
                    getattr(edited, step)()
                else:
                    edited.undo(step[1])
                made += 1
            except InputError:
                assert contents(out) == before
        assert len(edited.log()) == made  # none lost, none doubled
        copy = Path(folder) / "copy"
        shutil.copytree(out, copy)
        (copy / "state" / "unedited" / "follows.json").unlink(missing_ok=True)
        EditedFolder(copy).follow()  # a full replay from the run's own files
        assert contents(copy) == contents(out)
        while active(edited.log()):
            edited.undo()
        assert contents(out) == first


@given(st.lists(st.lists(EDITS | st.just("undo"), max_size=4), min_size=2, max_size=4))
@settings(max_examples=40, deadline=None)
def test_edits_go_along_through_any_number_of_runs(portions: list[list[Any]]) -> None:
    """Each portion is made on a run that goes on from the one before; images bear the same ids in
    all of them and look otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        before: Path | None = None
        said: list[str] = []
        for number, portion in enumerate(portions):
            out = finished_run(Path(folder) / f"run {number}", seed=number)
            look = np.random.default_rng(number).standard_normal((12, 8))
            np.save(out / "state" / "features.npy", look.astype(np.float16))
            first = contents(out)
            if before is not None:
                earlier = EditedFolder(before)
                applied = set(earlier.unapplied())
                carry_over(before, out)
                carry_over(before, out)  # after a crash it is done again
                EditedFolder(out, finished=False).adopt()
                assert [edit.text() for edit in EditedFolder(out).log()] == said
                # The same categories are there, and all images that edits speak of.
                assert set(EditedFolder(out).unapplied()) <= applied
            edited = EditedFolder(out)
            for step in portion:
                with contextlib.suppress(InputError):
                    edited.undo() if step == "undo" else edited.edit(step)
            said = [edit.text() for edit in edited.log()]
            copy = Path(folder) / f"copy {number}"
            shutil.copytree(out, copy)
            while active(EditedFolder(copy).log()):
                EditedFolder(copy).undo()
            assert contents(copy) == first
            before = out


@given(st.lists(EDITS, max_size=8))
@settings(max_examples=100, deadline=None)
def test_replay_changes_nothing_it_was_given_and_keeps_every_image_once(edits: list[Edit]) -> None:
    table = rows()
    given_records = records(table)
    numbered = [replace(edit, number=n) for n, edit in enumerate(edits, 1)]
    after = apply(numbered, table, given_records)
    assert table == rows() and given_records == records(table)
    assert after.assignments.column("id") == table.column("id")
    by_id = {record["id"]: record for record in after.categories}
    assert set(range(5)) <= set(by_id)  # ids stay for ever
    for row in after.assignments.to_pylist():
        record = by_id[row["category"]]
        assert (row["name"], row["kind"]) == (record["name"], record["kind"])
        assert record.get("merged_into") is None
    assert sum(record["count"] for record in after.categories) == table.num_rows


@given(st.lists(EDITS, min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_the_log_reads_back_what_was_appended_in_any_portions(edits: list[Edit]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edits.jsonl"
        EditLog(path).append(edits[:2])
        EditLog(path).append(edits[2:])
        kept = EditLog(path).edits
        assert [replace(e, number=0, when="", who="") for e in kept] == edits
        assert [edit.number for edit in kept] == list(range(1, len(edits) + 1))
