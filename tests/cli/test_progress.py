"""Progress as a person reads it."""

from __future__ import annotations

import io

from ttgcd.cli.progress import Progress


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_rate_and_time_left() -> None:
    out, time = io.StringIO(), Time()
    progress = Progress(out, 5, time)
    for done in range(0, 1001, 100):
        progress("stream", done, 1000)
        time.now += 10
    lines = out.getvalue().splitlines()
    assert lines[1] == "stream: 100/1,000 images, 10.0 images/s, 2 min left"
    assert lines[5] == "stream: 500/1,000 images, 10.0 images/s, 50 s left"
    assert lines[-1] == "stream: 1,000/1,000 images, 10.0 images/s"


def test_the_streams_time_left_does_not_count_the_realignment() -> None:
    out, time = io.StringIO(), Time()
    progress = Progress(out, 0, time)
    progress("stream", 0, 1000)
    time.now += 10
    progress("stream", 100, 1000)
    for epoch in (1, 2, 3):
        time.now += 100
        progress("re-align", epoch, 3)
    time.now += 10
    progress("stream", 200, 1000)
    time.now += 10
    progress("stream", 300, 1000)
    assert out.getvalue().splitlines()[2:] == [
        "re-align: 1/3 epochs",
        "re-align: 2/3 epochs, 100.0 s an epoch, 2 min left",
        "re-align: 3/3 epochs, 100.0 s an epoch",
        "stream: 200/1,000 images, 10.0 images/s, 80 s left",
        "stream: 300/1,000 images, 10.0 images/s, 70 s left",
    ]


def test_on_a_terminal_a_phase_has_one_line() -> None:
    out, time = Terminal(), Time()
    progress = Progress(out, clock=time)
    for done in (1, 2, 3):
        time.now += 1
        progress("stream", done, 4)
    progress("re-align", 1, 1)
    time.now += 1
    progress("stream", 4, 4)
    progress.close()
    lines = [line.split("\r")[-1].strip() for line in out.getvalue().split("\n")]
    assert [line.split(",")[0] for line in lines] == [
        "stream: 3/4 images",
        "re-align: 1/1 epoch",
        "stream: 4/4 images",
        "",
    ]


def test_a_second_run_of_the_same_phase_starts_its_rate_anew() -> None:
    out, time = io.StringIO(), Time()
    progress = Progress(out, 0, time)
    for done in (0, 50, 100, 0, 10):
        progress("stream", done, 100)
        time.now += 1
    assert out.getvalue().splitlines()[-1] == "stream: 10/100 images, 10.0 images/s, 9 s left"
