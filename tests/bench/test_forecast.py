"""The plan of a run, before it is run."""

from __future__ import annotations

import json

import pytest

from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.forecast import forecast
from ttgcd.bench.runner import Settings
from ttgcd.cli import main


def test_the_plan_counts_rows_and_knows_the_time_from_earlier_ones(cifar, model, tmp_path, capsys):
    run = ["bench", "run", "main", "--data", str(cifar), "--out", str(tmp_path), "--threads", "1"]
    run += ["--benchmarks", "cifar10-c", "--model", model, "--methods", "k-means,zero-shot"]
    assert main([*run, "--dry-run", "--seeds", "0", "--streams", "fog,snow"]) == 0
    plan = capsys.readouterr().out
    assert "nothing is run" in plan and "no rate yet" in plan
    assert "in all 4 rows, 4 to run" in plan
    assert not (tmp_path / "main.jsonl").exists()
    assert main([*run, "--seeds", "0", "--streams", "fog"]) == 0
    capsys.readouterr()
    assert main([*run, "--dry-run", "--seeds", "0,1", "--streams", "fog,snow"]) == 0
    plan = capsys.readouterr().out
    assert "in all 8 rows, 6 to run" in plan and "no rate" not in plan


def test_the_time_is_images_times_the_rate_of_the_method(cifar, model, tmp_path):
    rows = [
        {
            **{"format": 1, "label": "k-means", "run_id": str(seconds), "method": "kmeans"},
            **{
                "model": model,
                "seconds": {"method": seconds},
                "metrics": {"samples": 10},
                "config": {},
            },
        }
        for seconds in (1.0, 2.0, 30.0)
    ]
    (tmp_path / "buffer.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    experiment = load_experiment("main").select(
        methods=["k-means"], benchmarks=["cifar10-c"], models=[model], seeds=[0], streams=["fog"]
    )
    (part,) = forecast(experiment, Settings(data=cifar, out=tmp_path), print).parts
    assert part.images == 40
    assert part.seconds == pytest.approx(40 * 0.2)
    (part,) = forecast(experiment, Settings(data=cifar, out=tmp_path, limit=8), print).parts
    assert part.images == 8


def test_streams_may_belong_to_one_of_two_benchmarks(cifar, model, tmp_path, capsys):
    run = ["bench", "run", "main", "--data", str(cifar), "--out", str(tmp_path), "--dry-run"]
    run += ["--benchmarks", "cifar10-c,iconshift", "--model", model, "--methods", "k-means"]
    assert main([*run, "--seeds", "0", "--streams", "fog,line"]) == 0
    plan = capsys.readouterr().out
    # IconShift has corrupted streams as well: fog is a stream of both, line of one.
    assert "cifar10-c    k-means     1 rows" in plan and "iconshift    k-means     2 rows" in plan
    assert main([*run, "--streams", "fog,nowhere"]) == 2
    assert "no stream 'nowhere'" in capsys.readouterr().err


def test_the_papers_rows_alone():
    labels = [v.label for v in load_experiment("main").paper_rows().variants]
    assert labels[0] == "TENT++" and labels[-1] == "PACT" and len(labels) == 8
    assert len(load_experiment("rates").paper_rows().variants) == 8


def test_plain_kmeans_is_a_row_of_its_own_and_needs_an_estimate(cifar, model, tmp_path, capsys):
    run = ["bench", "run", "estimated_l", "--data", str(cifar), "--out", str(tmp_path)]
    run += ["--benchmarks", "cifar10-c", "--model", model, "--methods", "zero-shot+kmeans"]
    run += ["--streams", "fog", "--threads", "1"]
    assert main(run) == 0 and main([*run, "--plain-kmeans"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "estimated_l.jsonl").open()]
    assert [row["novel"] for row in rows] == ["estimated", "estimated-plain"]
    assert rows[0]["metrics"] == rows[1]["metrics"]  # 40 images: plain either way
    run[2] = "main"
    assert main([*run, "--plain-kmeans"]) == 2
    assert "does not estimate L" in capsys.readouterr().err


def test_a_label_with_a_comma_is_one_name(cifar, model, tmp_path, capsys):
    run = ["bench", "run", "components", "--data", str(cifar), "--out", str(tmp_path), "--dry-run"]
    run += ["--benchmarks", "cifar10-c", "--model", model, "--streams", "fog"]
    chosen = "no re-alignment, text,re-alignment (Adam), image"
    assert main([*run, "--methods", chosen]) == 0
    plan = capsys.readouterr().out
    assert "in all 2 rows" in plan
    assert "no re-alignment, text " in plan and "re-alignment (Adam), image " in plan
