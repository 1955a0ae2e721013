"""The harness on a tiny CIFAR-10-C with a tiny model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.forecast import forecast
from ttgcd.bench.results import read_results
from ttgcd.bench.runner import Settings, run_experiment
from ttgcd.cli import main
from ttgcd.errors import InputError


def chosen(model, name="main", **selection):
    given = {
        "methods": ["kmeans"],
        "benchmarks": ["cifar10-c"],
        "models": [model],
        "seeds": [0],
        "streams": ["fog", "snow"],
        **selection,
    }
    return load_experiment(name).select(**given)


@pytest.fixture
def go(cifar, tmp_path, monkeypatch):
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path / "cache"))  # no re-alignment of another test
    said = []

    def run(experiment, **settings):
        outcome = run_experiment(
            experiment,
            Settings(**{"data": cifar, "out": tmp_path, "threads": 1, **settings}),
            said.append,
        )
        path = tmp_path / f"{experiment.name}.jsonl"
        return outcome, read_results(path).rows

    run.said, run.data, run.out = said, cifar, tmp_path
    return run


def figures(rows):
    keys = ("label", "stream", "seed", "metrics", "deciles", "run_id")
    return sorted([{key: row[key] for key in keys} for row in rows], key=str)


def test_variants_of_stage_two_share_the_realignment_and_figures_stay(go, model):
    two = chosen(model, name="rates", methods=["eta 0.05", "eta 0.30"], streams=["fog"])
    _, rows = go(two)
    assert sorted(r["realignment_read_back"] for r in rows) == [False, True]
    assert all(r["health"]["realign_losses"] for r in rows)
    trained, read = sorted(rows, key=lambda r: r["realignment_read_back"])
    assert trained["health"]["realign_losses"] == read["health"]["realign_losses"]
    assert read["peak_gb"] is None
    # Trained anew instead of read back, the figures are the same.
    from ttgcd.bench.measure import Bench
    from ttgcd.bench.runner import plan

    settings = Settings(data=go.data, out=go.out, threads=1)
    again = Bench(go.data, cost=True)
    for job in plan(two, settings, print):
        row = next(r for r in rows if r["label"] == job.label)
        assert again.measure(job)["metrics"] == row["metrics"]


def test_scout_is_a_row_on_the_encoder_that_pact_has_realigned(go, model):
    rows = {}
    for label in ("PACT", "Scout, re-aligned", "Scout"):
        go(chosen(model, methods=[label], streams=["fog"]))
    for row in read_results(go.out / "main.jsonl").rows:
        rows[row["label"]] = row
    staged, pact = rows["Scout, re-aligned"], rows["PACT"]
    assert staged["realignment_read_back"], "one re-alignment, whoever stands behind it"
    assert staged["health"]["realign_losses"] == pact["health"]["realign_losses"]
    assert staged["config"]["realign"]["epochs"] == 30
    assert (staged["method"], staged["trains"]) == ("scout", "image LayerNorm")
    assert "realign" not in rows["Scout"]["config"]
    plan = forecast(
        chosen(model, methods=["Scout, re-aligned"], seeds=[1], streams=["fog"]),
        Settings(data=go.data, out=go.out),
        print,
    )
    own = sum(staged["seconds"].values())
    assert plan.parts[0].seconds == pytest.approx(own), "its own rate, not that of Scout alone"


def test_cost_is_measured_anew_beside_the_encoder_alone(go, model):
    _, rows = go(chosen(model, methods=["PACT (robust seeds)", "PACT"], streams=["fog"]))
    assert sum(r["realignment_read_back"] for r in rows) == 1
    cost = chosen(model, name="cost", methods=["PACT (robust seeds)", "PACT"], streams=["fog"])
    outcome, rows = go(cost)
    assert (outcome.taken_over, outcome.measured) == (0, 2)
    assert not any(r["realignment_read_back"] for r in rows)
    for row in rows:
        assert row["forwards"] == pytest.approx(row["ms_per_batch"] / row["forward_ms"])
        assert row["other_ms"] == pytest.approx(row["ms_per_batch"] - row["forward_ms"])
        assert row["memory_ratio"] == pytest.approx(row["stream_gb"] / row["encoder_gb"])
        assert row["peak_gb"] == max(row["stream_gb"], row["warmup_gb"])
        assert row["warmup_s"] > 0 and row["total_s"] > 0


def test_a_row_per_stream_method_and_seed(go, model):
    outcome, rows = go(chosen(model, methods=["kmeans", "PACT"], seeds=[0, 1]))
    assert outcome.measured == len(rows) == 8
    assert {(r["label"], r["stream"], r["seed"]) for r in rows} == {
        (label, stream, seed)
        for label in ("k-means", "PACT")
        for stream in ("fog", "snow")
        for seed in (0, 1)
    }
    row = rows[0]
    assert row["metrics"]["samples"] == 40 and len(row["deciles"]) == 10
    assert row["known_classes"] == row["novel_given"] == 5
    assert row["ms_per_batch"] > 0 and row["peak_gb"] > 0 and row["manifest"]
    assert set(row["seconds"]) == {"input", "method", "sinks"}  # parts that add up
    assert {row["answers"] for row in rows} == {"arrival", "end"}


def test_what_is_there_is_not_run_again(go, model):
    first, rows = go(chosen(model))
    again, same = go(chosen(model))
    assert (first.measured, again.measured, again.there_already) == (2, 0, 2)
    assert rows == same
    more, _ = go(chosen(model, seeds=[0, 1]))
    assert (more.measured, more.there_already) == (2, 2)


def test_runs_are_shared_between_experiments_and_between_equal_rows(go, model):
    main_, _ = go(chosen(model, methods=["PACT"]))
    assert main_.measured == 2
    rates, rows = go(chosen(model, "rates", methods=["eta 0.05", "lambda 0.10"]))
    assert (rates.measured, rates.taken_over) == (0, 4)
    assert {row["taken_from"] for row in rows} == {"main: PACT"}
    assert {row["experiment"] for row in rows} == {"rates"}


def test_other_files_in_the_results_folder_do_not_stand_in_the_way(go, model):
    (go.out / "discovery.jsonl").write_text('{"scenario": "sorted"}\n{"scenario": "late"}\n')
    _, rows = go(chosen(model, streams=["fog"]))
    assert len(rows) == 1
    assert forecast(chosen(model), Settings(data=go.data, out=go.out), print).parts[0].there == 1


def test_two_equal_rows_of_one_experiment_are_measured_once(go, model):
    outcome, rows = go(chosen(model, "rates", methods=["eta 0.05", "lambda 0.10"]))
    assert outcome.measured == 2 and len(rows) == 4
    again, _ = go(chosen(model, "rates", methods=["eta 0.05", "lambda 0.10"]))
    assert again.there_already == 4


def test_equal_seeds_give_equal_figures_whatever_the_workers(go, model, tmp_path):
    _, alone = go(chosen(model, methods=["PACT"], seeds=[0, 1]))
    _, together = go(
        chosen(model, methods=["PACT"], seeds=[0, 1]), workers=2, out=tmp_path / "parallel"
    )
    together = read_results(tmp_path / "parallel" / "main.jsonl").rows
    assert figures(alone) == figures(together)


def test_a_limit_takes_the_same_images_for_every_seed(go, model):
    _, rows = go(chosen(model, seeds=[0, 1], streams=["fog"]), limit=25)
    assert {row["metrics"]["samples"] for row in rows} == {25}
    assert len({row["data"] for row in rows}) == 1
    assert {row["limit"] for row in rows} == {25}


def test_the_default_method_may_count_for_itself_where_the_others_get_an_estimate(
    go, model, capsys
):
    given, counting = "Scout", "Scout (counting; revised at the end)"
    experiment = chosen(model, "estimated_l", methods=[given, counting], streams=["fog"])
    _, rows = go(experiment)
    told = {row["label"]: row for row in rows}
    assert told[given]["novel"] == "estimated" and told[given]["novel_given"] >= 1
    found = told[counting]
    assert found["novel"] == "counted" and found["novel_given"] is None
    assert found["novel_found"] == found["health"]["novel"] and found["answers"] == "end"
    assert main(["bench", "table", "estimated_l", "--results", str(go.out)]) == 0
    text = capsys.readouterr().out
    assert text.count("cifar10-c\n---------") == 1, "both stand in one table"
    assert f"L counted by the method = {found['novel_found']:.1f} (mean over streams)" in text


def test_an_estimated_number_of_classes_is_shared_by_the_methods(go, model):
    experiment = chosen(model, "estimated_l", methods=["kmeans", "zero-shot+kmeans"])
    _, rows = go(experiment)
    by_stream = {}
    for row in rows:
        by_stream.setdefault(row["stream"], set()).add(row["novel_given"])
    assert all(len(given) == 1 for given in by_stream.values())
    assert all(1 <= given.pop() <= 15 for given in by_stream.values())
    more, rows = go(chosen(model, "estimated_l", methods=["kmeans", "hdbscan"]))
    assert more.measured == 2


def test_missing_benchmarks_are_said_and_only_fatal_when_nothing_is_left(go, model):
    outcome, _ = go(chosen(model, benchmarks=["cifar10-c", "domainnet"], streams=None))
    assert outcome.measured == 15
    assert any("left out" in line and "domainnet" in line for line in go.said)
    with pytest.raises(InputError, match="no domainnet in"):
        go(chosen(model, benchmarks=["domainnet"]))
    with pytest.raises(InputError, match="no stream 'rain'"):
        go(chosen(model, streams=["rain"]))


def test_other_weights_under_the_same_name_are_refused(go, model, tmp_path):
    go(chosen(model, streams=["fog"]))
    path = tmp_path / "main.jsonl"
    fingerprint = read_results(path).rows[0]["fingerprint"]
    path.write_text(path.read_text().replace(fingerprint, "0" * len(fingerprint)))
    with pytest.raises(InputError, match="other weights"):
        go(chosen(model, streams=["fog", "snow"]))


def test_one_failing_method_does_not_cost_the_others(go, model):
    outcome, rows = go(chosen(model, methods=["tests.bench.own:Broken", "kmeans"]))
    assert {row["label"] for row in rows} == {"k-means"}
    assert len(outcome.failed) == 2 and "on purpose" in outcome.failed[0]


def test_the_order_of_the_stream_is_the_seeds(go, model):
    _, rows = go(chosen(model, methods=["PACT"], seeds=[0, 1], streams=["fog"]))
    assert rows[0]["deciles"] != rows[1]["deciles"]
    assert np.isfinite(rows[0]["deciles"]).all()


COMMAND = ["bench", "run", "main", "--benchmarks", "cifar10-c", "--methods", "PACT", "--seeds", "0"]
COMMAND += ["--threads", "1"]
START = "from ttgcd.cli import main; raise SystemExit(main())"


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_any_point_it_goes_on_without_loss_or_double(cifar, model, tmp_path, workers):
    path = tmp_path / "main.jsonl"
    command = [*COMMAND, "--model", model, "--data", str(cifar), "--out", str(tmp_path)]
    program = [sys.executable, "-c", START, *command, "--workers", str(workers)]
    process = subprocess.Popen(program, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (path.exists() and path.stat().st_size):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = read_results(path).rows
    assert 1 <= len(kept) < 15, "the run was over before it could be killed"
    assert main(command) == 0
    rows = read_results(path).rows
    assert rows[: len(kept)] == kept
    assert len(rows) == len({row["stream"] for row in rows}) == 15
    assert not read_results(path).notes


def test_the_command_prints_the_table(cifar, model, tmp_path, capsys):
    command = [*COMMAND, "--model", model, "--data", str(cifar), "--out", str(tmp_path)]
    assert main([*command, "--streams", "fog", "--limit", "30"]) == 0
    printed = capsys.readouterr().out
    assert "NOT THE PAPER'S MODEL" in printed
    assert "ONLY 30 IMAGES PER STREAM" in printed
    assert "cifar10-c: 1 of 15 streams" in printed
    assert main(["bench", "run", "main", "--seeds", "x"]) == 2
    assert main(["bench", "run", "main", "--limit", "0"]) == 2
    assert main(["bench", "table", "main", "--results", str(tmp_path / "none")]) == 2


def test_clicks_are_measured_and_not_taken_from_rows_without_them(model, go):
    go(chosen(model, streams=["fog"]))
    outcome, rows = go(chosen(model, "clicks", streams=["fog"]))
    assert outcome.measured == 1 and outcome.taken_over == 0
    assert rows[0]["after_0"] == pytest.approx(rows[0]["metrics"]["all"])
    assert rows[0]["after_0"] <= rows[0]["after_10"] <= rows[0]["after_50"]
