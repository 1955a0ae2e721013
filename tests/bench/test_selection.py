"""Choosing the best arm of a sweep, and running with it."""

from __future__ import annotations

import json

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.selection import read_selection, select_arms, write_selection
from ttgcd.cli import main
from ttgcd.errors import InputError

SWEEPS = load_experiment("sweeps")
ARMS = {"TENT++ baseline": 40.0, "TENT++ lr 10^-3.5": 44.0, "TENT++ lr 10^-2.5": 30.0}


def rows(arms=None, streams=("spatter", "saturate"), **more):
    return [
        make_row(label, stream, all_=value, **more)
        for label, value in (ARMS if arms is None else arms).items()
        for stream in streams
    ]


def test_the_arm_with_the_highest_mean_is_chosen():
    chosen = select_arms(SWEEPS, rows(), None, None)
    (arm,) = chosen.arms
    assert (arm.method, arm.label, arm.arms) == ("tent++", "TENT++ lr 10^-3.5", 3)
    assert (arm.all, arm.default) == (44.0, 40.0)
    assert arm.config == {"lr": 10**-3.5}
    assert chosen.streams == ("saturate", "spatter")
    assert "TENT++ lr 10^-3.5" in chosen.text() and "44.00" in chosen.text()


def test_arms_are_compared_on_the_streams_that_all_of_them_have():
    unfair = [*rows(), make_row("TENT++ lr 10^-2.5", "speckle_noise", all_=99.0)]
    assert select_arms(SWEEPS, unfair, None, None).arms[0].label == "TENT++ lr 10^-3.5"


def test_the_default_wins_a_draw():
    equal = {"TENT++ baseline": 40.0, "TENT++ lr 10^-3.5": 40.0}
    assert select_arms(SWEEPS, rows(equal), None, None).arms[0].label == "TENT++ baseline"


def test_one_model_and_one_benchmark_at_a_time():
    mixed = rows() + rows({"TENT++ baseline": 70.0}, model="mini")
    with pytest.raises(InputError, match="--model"):
        select_arms(SWEEPS, mixed, None, None)
    assert select_arms(SWEEPS, mixed, "mini", None).arms[0].all == 70.0
    with pytest.raises(InputError, match="run it first"):
        select_arms(SWEEPS, mixed, "other", None)
    with pytest.raises(InputError, match="--limit"):
        select_arms(SWEEPS, rows() + rows(limit=50), None, None)
    with pytest.raises(InputError, match="no sweep"):
        select_arms(load_experiment("main"), rows(), None, None)


def test_a_selection_comes_back_from_its_file_and_a_broken_one_is_an_error(tmp_path):
    file = tmp_path / "selected.json"
    chosen = select_arms(SWEEPS, rows(), None, None)
    write_selection(chosen, file)
    assert read_selection(file) == chosen
    told = json.loads(file.read_text())
    told["chosen"][0]["config"] = {"rate": 1}
    file.write_text(json.dumps(told))
    with pytest.raises(InputError, match="rate"):
        read_selection(file)
    for text in ("", "[]", "{}", json.dumps({**told, "format": 9})):
        file.write_text(text)
        with pytest.raises(InputError, match=r"selected\.json"):
            read_selection(file)
    with pytest.raises(InputError, match="bench select"):
        read_selection(tmp_path / "absent.json")


def test_from_the_sweep_to_the_main_table(cifar, model, tmp_path, capsys):
    """sweeps -> select -> main --selected, through the front door."""
    out = ["--out", str(tmp_path), "--data", str(cifar), "--benchmarks", "cifar10-c"]
    out += ["--model", model, "--threads", "1"]
    assert main(["bench", "run", "sweeps", "--methods", "HiLo++", "--streams", "fog", *out]) == 0
    file = tmp_path / "selected.json"
    assert main(["bench", "select", "--results", str(tmp_path), "-o", str(file)]) == 0
    (arm,) = read_selection(file).arms
    assert arm.method == "hilo++" and arm.arms == 7
    told = json.loads(file.read_text())
    told["chosen"][0]["config"] = {"w_sem": 0.25}
    file.write_text(json.dumps(told))
    run = ["bench", "run", "main", "--methods", "hilo++,k-means", "--seeds", "0"]
    run += ["--streams", "fog", "--selected", str(file)]
    assert main([*run, *out]) == 0
    lines = (tmp_path / "main.jsonl").read_text().splitlines()
    found = {row["label"]: row["config"] for row in map(json.loads, lines)}
    assert found["HiLo++ [w_sem 0.25]"]["w_sem"] == 0.25
    assert "k-means" in found
    # The command line wins over the file.
    assert main([*run, *out, "--set", "hilo++.w_sem=1.0"]) == 0
    assert "HiLo++ [w_sem 1]" in (tmp_path / "main.jsonl").read_text()
