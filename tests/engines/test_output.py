"""Whose folder it is: refusals, locks, and errors a user can act on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.engines.test_resume import Death, interrupted, run_embeddings, stop_after
from tests.engines.worlds import Pictures, results, run_images
from ttgcd.engines.lock import only_process
from ttgcd.engines.output import difference
from ttgcd.errors import InputError
from ttgcd.methods.pact import Pact


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    for options in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(InputError, match="not the output of a run"):
            run_embeddings(tmp_path, **options)
    assert os.listdir(tmp_path) == ["photo.jpg"]


def test_a_run_with_other_things_beside_it_is_not_replaced(tmp_path):
    run_embeddings(tmp_path)
    before = results(tmp_path)
    (tmp_path / ".DS_Store").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(InputError, match=r"also 'notes.txt', which no run has written"):
        run_embeddings(tmp_path, overwrite=True)
    assert results(tmp_path) == before
    (tmp_path / "notes.txt").unlink()
    assert run_embeddings(tmp_path, overwrite=True).samples == 600


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        run_embeddings(tmp_path / "out")


def test_a_finished_run_is_kept(tmp_path):
    run_embeddings(tmp_path)
    before = results(tmp_path)
    with pytest.raises(InputError, match="finished run: it is complete"):
        run_embeddings(tmp_path)
    run = run_embeddings(tmp_path, resume=True)
    assert run.already_complete
    assert run.samples == 600
    assert results(tmp_path) == before
    assert run_embeddings(tmp_path, overwrite=True).resumed_at is None


def test_an_unfinished_run_is_kept(tmp_path):
    interrupted(tmp_path, Pictures.make(200))
    with pytest.raises(InputError, match="unfinished run: go on with `resume=True`"):
        run_images(tmp_path, Pictures.make(200))


def test_a_run_that_has_nothing_yet_needs_no_flag(tmp_path):
    method = Pact(warmup=100)
    stop_after(method, 1)
    with pytest.raises(Death):
        run_embeddings(tmp_path, method=method)
    assert run_embeddings(tmp_path).samples == 600


def test_other_settings_are_refused_with_the_difference(tmp_path):
    source = Pictures.make(200)
    interrupted(tmp_path, source)
    with pytest.raises(InputError) as caught:
        run_images(
            tmp_path, source, settings={"model": {"sha256": "ff"}, "warmup": 32}, resume=True
        )
    assert "warmup: 64 there, 32 now" in str(caught.value)
    assert 'model: nothing there, {"sha256": "ff"} now' in str(caught.value)
    run_images(tmp_path, source, settings={"warmup": 32}, overwrite=True)
    with pytest.raises(InputError, match="warmup: 32 there, 64 now"):
        run_images(tmp_path, source, resume=True)


def test_a_finished_run_on_another_input_is_refused(tmp_path):
    run_images(tmp_path, Pictures.make(200))
    with pytest.raises(InputError, match=r"\(other input\)"):
        run_images(tmp_path, Pictures.make(201), resume=True)


def test_difference_is_short_and_names_the_path_to_a_value():
    there = {"a": {"b": 1, "same": 2}, **{f"k{i}": i for i in range(9)}}
    text = difference(there, {"a": {"b": "x" * 99, "same": 2}})
    assert text.startswith('a.b: 1 there, "xxx')
    assert text.endswith("4 more")
    assert difference(there, there) == ""


def test_a_second_process_is_refused_and_a_dead_one_is_not(tmp_path):
    out = tmp_path / "out"
    code = (
        "import sys; from pathlib import Path; from ttgcd.engines.output import OutputFolder\n"
        "with OutputFolder(Path(sys.argv[1])).held():\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=f"another process .process {other.pid}. is writing"):
            run_embeddings(out)
        other.kill()
        other.wait()
    assert (out / ".progress/lock").exists()
    assert run_embeddings(out).samples == 600


def test_a_lock_is_given_back_and_its_file_goes(tmp_path):
    lock = tmp_path / "here/lock"
    lock.parent.mkdir()
    with only_process(lock, tmp_path), pytest.raises(InputError), only_process(lock, tmp_path):
        pass
    assert not lock.exists()
    with only_process(lock, tmp_path):
        pass


def test_a_full_disk_leaves_a_run_that_can_go_on(tmp_path, monkeypatch):
    run_embeddings(tmp_path / "whole")
    out = tmp_path / "out"
    fsync, calls = os.fsync, 0

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 30:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"No space left on device.*`resume=True`"):
        run_embeddings(out, checkpoint_every_batches=1)
    monkeypatch.undo()
    left = [name for _, _, names in os.walk(out) for name in names]
    assert not [name for name in left if name.endswith(".tmp")]
    assert run_embeddings(out, resume=True).resumed_at
    assert results(out) == results(tmp_path / "whole")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_clear_line(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="Permission denied"):
            run_embeddings(tmp_path / "out")
    finally:
        tmp_path.chmod(0o700)


def test_a_place_that_cannot_be_written_is_one_clear_line():
    with pytest.raises(InputError, match="cannot write to '/proc/out'"):
        from pathlib import Path

        run_embeddings(Path("/proc/out"))
