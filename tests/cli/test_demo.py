"""The demo takes nothing from anybody and leaves nothing lying about."""

from __future__ import annotations

import csv
import signal
from pathlib import Path

import numpy as np

from ttgcd.cli import main
from ttgcd.engines.signals import Interrupted


def demo(*arguments: str) -> int:
    return main(["demo", "--domain", "handdrawn", *arguments])


def test_a_finished_run_is_not_overwritten_unasked(tmp_path: Path, capsys) -> None:
    rows = np.eye(6, 4, dtype=np.float32) + 0.1
    np.save(tmp_path / "e.npy", rows)
    np.save(tmp_path / "a.npy", rows[:2])
    out = tmp_path / "mine"
    files = [str(tmp_path / "e.npy"), "--anchors", str(tmp_path / "a.npy")]
    run = ["discover", *files, "--known", "x,y", "--novel", "1", "--out", str(out), "--quiet"]
    assert main(run) == 0
    before = (out / "assignments.parquet").read_bytes()
    assert demo("--out", str(out)) == 2
    assert "use the same ones, --overwrite, or another --out" in capsys.readouterr().err
    assert (out / "assignments.parquet").read_bytes() == before


def test_stopped_it_names_an_option_that_it_has_and_leaves_no_labels(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    seen = {}

    def stopped(source, settings, **options):
        seen.update(options)
        with open(settings.labels, newline="", encoding="utf-8") as file:
            seen["labels"] = len(list(csv.DictReader(file)))
        raise Interrupted(signal.SIGINT)

    monkeypatch.setattr("ttgcd.bench.demo.run_discovery", stopped)
    monkeypatch.chdir(tmp_path)
    assert demo() == 130
    assert "go on with --resume" in capsys.readouterr().err
    assert not seen["overwrite"] and not seen["resume"] and seen["labels"] == 295
    assert list(tmp_path.iterdir()) == []
    assert demo("--resume") == 130 and seen["resume"]


def test_a_place_that_cannot_be_written_is_one_line(capsys) -> None:
    assert demo("--out", "/proc/out") == 2
    error = capsys.readouterr().err
    assert "cannot write to '/proc/out'" in error and "Traceback" not in error


def test_the_second_half_tells_how_far_it_is() -> None:
    from ttgcd.bench.demo import _shown
    from ttgcd.streams.base import Batch

    batches = [Batch(("a", "b"), 0, (0, 1), 2), Batch(("c",), 2, (2,), 3)]
    told = []
    passed = list(_shown(batches, "compare kmeans", 3, lambda *what: told.append(what)))
    assert passed == batches
    assert told == [("compare kmeans", 2, 3), ("compare kmeans", 3, 3)]


def test_the_run_is_told_before_the_comparison_which_may_be_left(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    out, said = tmp_path / "demo", {}

    def stopped(method, task, stream, caller):
        said["first"] = capsys.readouterr().out
        raise KeyboardInterrupt

    monkeypatch.setattr("ttgcd.bench.demo.run", stopped)
    assert demo("--out", str(out)) == 130
    assert "known classes" in said["first"] and f"report: {out}/report.html" in said["first"]
    assert "5 other methods on the same images" in said["first"]
    assert "not compared; the run is in" in capsys.readouterr().err
    assert (out / "report.html").is_file()


def test_presets_that_train_alike_train_once(tmp_path: Path, monkeypatch) -> None:
    """The paper's preset and the robust one differ in what comes after the training."""
    from ttgcd.engines.local import run

    trained = []

    def noted(method, task, stream, caller):
        if hasattr(method, "epochs"):
            method.epochs = 1
        done = run(method, task, stream, caller=caller)
        trained.append((method.name, len(caller.realigned)))
        return done

    monkeypatch.setattr("ttgcd.bench.demo.run", noted)
    assert demo("--out", str(tmp_path / "demo")) == 0
    assert trained[:2] == [("pact", 1), ("pact", 1)] and len(trained) == 5
