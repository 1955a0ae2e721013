"""A run that dies anywhere and goes on leaves the same bytes as one that never stopped."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from tests.engines.worlds import (
    Pictures,
    embedding_stream,
    embedding_task,
    embeddings,
    results,
    run_images,
)
from ttgcd.engines.folder import FolderRun, run_to_folder
from ttgcd.errors import InputError
from ttgcd.methods.base import Method
from ttgcd.methods.pact import Pact
from ttgcd.storage.state import State


class Death(BaseException):
    """Stands for the process's end; real kills are in the fault campaign."""


class Mortal:
    """Dies at the n-th call that changes the disk."""

    def __init__(self, monkeypatch) -> None:
        self.calls, self.last = 0, -1
        for name in ("fsync", "replace", "rename", "unlink", "rmdir", "mkdir"):
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call):
        def counted(*args, **kwargs):
            self.calls += 1
            if self.calls == self.last:
                raise Death
            return call(*args, **kwargs)

        return counted

    def run(self, last: int, action) -> bool:
        """Whether the action came to its end."""
        self.calls, self.last = 0, last
        try:
            action()
            return True
        except Death:
            return False
        finally:
            self.last = -1


def test_death_at_every_change_of_the_disk(tmp_path, monkeypatch):
    data, whole, out = embeddings(160), tmp_path / "whole", tmp_path / "out"
    run_embeddings(whole, data)
    mortal = Mortal(monkeypatch)
    mortal.run(-1, lambda: run_embeddings(out, data, checkpoint_every_batches=1))
    points = mortal.calls
    assert points > 60
    for last in sorted({*range(1, points, 6), *range(points - 6, points + 1)}):
        shutil.rmtree(out)
        assert not mortal.run(
            last, lambda: run_embeddings(out, data, checkpoint_every_batches=1)
        ), "it was to die"
        run_embeddings(out, data, resume=True, checkpoint_every_batches=2)
        assert results(out) == results(whole), last
        assert not (out / ".progress").exists()


def test_death_again_and_again(tmp_path, monkeypatch):
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_images(whole)
    mortal = Mortal(monkeypatch)
    rng = np.random.default_rng(0)
    deaths = 0
    while not mortal.run(
        int(rng.integers(1, 90)),
        lambda: run_images(out, resume=True, checkpoint_every_batches=1),
    ):
        deaths += 1
        assert deaths < 100
    assert deaths > 2
    assert results(out) == results(whole)


def stop_after(method: Method, batches: int) -> None:
    """Make a method die when it is given one batch too many."""
    observe, count = method.observe, 0

    def mortal(batch):
        nonlocal count
        count += 1
        if count > batches:
            raise Death
        return observe(batch)

    method.observe = mortal  # type: ignore[method-assign]


def run_embeddings(out, data=None, method=None, **options) -> FolderRun:
    data = embeddings(600) if data is None else data
    shuffle = options.pop("shuffle_seed", None)
    return run_to_folder(
        method or Pact(warmup=100),
        embedding_task(),
        embedding_stream(data, shuffle_seed=shuffle),
        out,
        {"seed": 0},
        **options,
    )


@pytest.mark.parametrize("batches", [0, 2, 4, 18])
@pytest.mark.parametrize("shuffle_seed", [None, 3])
def test_embeddings_go_on_exactly(tmp_path, batches, shuffle_seed):
    run_embeddings(tmp_path / "whole", shuffle_seed=shuffle_seed)
    method = Pact(warmup=100)
    stop_after(method, batches)
    options = {"shuffle_seed": shuffle_seed, "checkpoint_every_batches": 1}
    with pytest.raises(Death):
        run_embeddings(tmp_path / "out", method=method, **options)
    run = run_embeddings(tmp_path / "out", resume=True, **options)
    assert run.resumed_at == (None if batches < 4 else 32 * batches)
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def mortal(epochs: list[int], die_after: int | None = None):
    """Hears of the warm-up's epochs, and dies in one."""

    def progress(phase: str, done: int, total: int) -> None:
        if phase == "re-align":
            epochs.append(done)
            if die_after is not None and done > die_after:
                raise Death

    return progress


def test_finished_epochs_of_the_warmup_are_not_done_again(tmp_path):
    epochs: list[int] = []
    run_images(tmp_path / "whole")
    with pytest.raises(Death):
        run_images(tmp_path / "out", progress=mortal(epochs, die_after=2))
    run = run_images(tmp_path / "out", progress=mortal(epochs), resume=True)
    assert epochs == [1, 2, 3, 3]
    assert run.resumed_at == 0
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def test_death_while_the_buffer_is_filled_again_keeps_the_finished_epochs(tmp_path):
    """The encoder is the pretrained one then, whatever the epochs had made of it."""
    epochs: list[int] = []
    run_images(tmp_path / "whole")
    with pytest.raises(Death):
        run_images(tmp_path / "out", progress=mortal(epochs, die_after=1))
    interrupted(tmp_path / "out", None, batches=1, resume=True)
    run_images(tmp_path / "out", progress=mortal(epochs), resume=True)
    assert epochs == [1, 2, 2, 3]
    assert results(tmp_path / "out") == results(tmp_path / "whole")


class Tally:
    """A sink with a memory of its own."""

    def __init__(self) -> None:
        self.rows = 0
        self.ids: list[str] = []

    def write(self, batch, rows) -> None:
        self.rows += int(rows.final.sum())
        self.ids += batch.ids if batch is not None else ()

    def state(self) -> State:
        return State({"rows": np.array(self.rows)}, {"ids": self.ids})

    def load(self, state: State) -> None:
        self.rows, self.ids = int(state.arrays["rows"]), list(state.values["ids"])


@pytest.mark.parametrize("batches", [2, 9])
def test_other_sinks_see_every_sample_once(tmp_path, batches):
    method, lost = Pact(warmup=100), Tally()
    stop_after(method, batches)
    with pytest.raises(Death):
        run_embeddings(tmp_path, method=method, sinks=[lost], checkpoint_every_batches=3)
    tally = Tally()
    run_embeddings(tmp_path, resume=True, sinks=[tally])
    assert tally.rows == 600
    assert tally.ids == [str(i) for i in range(600)]


def test_finishing_is_done_again_when_it_failed(tmp_path):
    def fail(run: FolderRun) -> None:
        raise Death

    told: list[FolderRun] = []
    with pytest.raises(Death):
        run_embeddings(tmp_path / "out", finishing=fail)
    run_embeddings(tmp_path / "out", resume=True, finishing=told.append)
    assert [run.samples for run in told] == [600]
    run_embeddings(tmp_path / "whole")
    assert results(tmp_path / "out") == results(tmp_path / "whole")


# -- inputs that have changed ---------------------------------------------------------------------


def interrupted(out, source: Pictures | None, batches: int = 4, **options) -> None:
    method = Pact(warmup=64, epochs=3, optimiser="adam", realign_batch_size=32)
    stop_after(method, batches)
    with pytest.raises(Death):
        run_images(out, source, method, checkpoint_every_batches=1, **options)


def ids(out) -> list[str]:
    import pyarrow.parquet as pq

    return pq.read_table(out / "assignments.parquet").column("id").to_pylist()


def test_later_files_may_come_and_go(tmp_path):
    source = Pictures.make(200)
    interrupted(tmp_path, source)
    now = source.without("0150.png", "0151.png")
    now.names[-1] = "new.png"
    said: list[str] = []
    run = run_images(tmp_path, now, resume=True, say=said.append)
    assert run.resumed_at == 128
    assert "changed" in said[0]
    assert ids(tmp_path) == now.names


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.without("0005.png"), "sample 6 was '0005.png' and is now '0006.png'"),
        (lambda s: s.without(*s.names[100:]), "position 128"),
        (lambda s: s.versions.update({"0005.png": 1}) or s, "another size or time"),
    ],
)
def test_files_already_read_may_not_change(tmp_path, change, words):
    source = Pictures.make(200)
    interrupted(tmp_path, source)
    with pytest.raises(InputError, match="the input has changed") as caught:
        run_images(tmp_path, change(source), resume=True)
    assert words in str(caught.value)
    assert "overwrite=True" in str(caught.value)
    assert run_images(tmp_path, change(source), overwrite=True).resumed_at is None


def test_a_shuffled_stream_of_another_length_is_refused(tmp_path):
    source = Pictures.make(200)
    interrupted(tmp_path, source, shuffle_seed=1)
    with pytest.raises(InputError, match="the input has changed"):
        run_images(tmp_path, source.without("0199.png"), resume=True, shuffle_seed=1)


def test_a_warmup_on_other_files_begins_again(tmp_path):
    source = Pictures.make(200)
    with pytest.raises(Death):
        run_images(tmp_path / "out", source, progress=mortal([], die_after=1))
    now = source.without("0005.png")
    said: list[str] = []
    run = run_images(tmp_path / "out", now, resume=True, say=said.append)
    assert run.resumed_at is None
    assert "begins again" in said[0]
    run_images(tmp_path / "whole", now)
    assert results(tmp_path / "out") == results(tmp_path / "whole")
