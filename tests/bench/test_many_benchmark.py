from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.many import main


def test_many_categories_are_measured_beside_k_means(tmp_path: Path, capsys) -> None:
    out = tmp_path / "many.jsonl"
    size = ["--categories", "40", "--rows", "1200", "--known", "5", "--noise", "0.8"]
    main([*size, "--out", str(out)])
    scout, kmeans = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    assert (scout["what"], kmeans["what"]) == ("scout", "k-means")
    assert scout["bound"] == kmeans["bound"] == pytest.approx(1.0, abs=0.02)
    assert scout["accuracy"] > scout["bound"] - 0.03
    assert 0.5 < kmeans["accuracy"] <= 1.0
    assert all(row["gb"] > 0.05 and row["cpu_seconds"] > 0 for row in (scout, kmeans))
    told = capsys.readouterr().out
    main(["--table", "--out", str(out)])
    assert capsys.readouterr().out == told
