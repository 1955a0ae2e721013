"""``bench run --engine ray``: the rows of the local bench."""

from __future__ import annotations

import pytest

from ttgcd.bench.results import read_results
from ttgcd.cli import main


def test_streams_spread_over_a_cluster_leave_the_same_figures(tmp_path, cifar, model, monkeypatch):
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path / "cache"))
    figures = {}
    for engine in ("local", "ray"):
        command = [
            *("bench", "run", "main", "--data", str(cifar), "--out", str(tmp_path / engine)),
            *("--methods", "kmeans", "--benchmarks", "cifar10-c", "--streams", "fog,snow"),
            *("--model", model, "--seeds", "0", "--threads", "1"),
            *("--engine", engine, "--workers", "2" if engine == "ray" else "1"),
        ]
        assert main(command) == 0
        rows = read_results(tmp_path / engine / "main.jsonl").rows
        figures[engine] = sorted((r["stream"], r["run_id"], str(r["metrics"])) for r in rows)
    assert len(figures["ray"]) == 2
    assert figures["ray"] == figures["local"]
