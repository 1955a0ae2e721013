"""Asked to stop: the batch is finished, a checkpoint is left, the code is the customary one."""

from __future__ import annotations

import os
import signal

import pytest

from tests.engines.test_resume import run_embeddings
from tests.engines.worlds import results, run_images
from ttgcd.engines.signals import Interrupted, stop_requests
from ttgcd.methods.pact import Pact


class Signalled(Pact):
    """Gets a signal while it works on a batch."""

    def observe(self, batch):
        rows = super().observe(batch)
        if batch.start == self.at:
            os.kill(os.getpid(), self.number)
        return rows


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("at", [32, 320])
def test_the_batch_is_finished_and_the_run_goes_on_later(tmp_path, number, code, at):
    run_embeddings(tmp_path / "whole")
    method = Signalled(warmup=100)
    method.at, method.number = at, number
    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught:
        run_embeddings(tmp_path / "out", method=method)
    assert caught.value.exit_code == code
    assert "resume=True" in str(caught.value)
    assert signal.getsignal(number) is before
    run = run_embeddings(tmp_path / "out", resume=True)
    assert run.resumed_at == (None if at < 100 else at + 32)
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def test_the_warmup_stops_after_the_epoch(tmp_path):
    epochs: list[int] = []

    def progress(phase: str, done: int, total: int) -> None:
        if phase == "re-align":
            epochs.append(done)
            if done == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_images(tmp_path / "out", progress=progress)
    assert epochs == [1, 2]
    run_images(tmp_path / "out", resume=True)
    run_images(tmp_path / "whole")
    assert results(tmp_path / "out") == results(tmp_path / "whole")


def test_a_second_signal_acts_as_usual():
    with stop_requests() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_requests() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop
    finally:
        signal.signal(signal.SIGHUP, before)
