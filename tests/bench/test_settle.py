"""The verdict on the optimiser."""

from __future__ import annotations

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.settle import judge
from ttgcd.cli import main
from ttgcd.errors import InputError

SETTLE = load_experiment("settle")
STREAMS = ("gaussian_blur", "saturate", "spatter", "speckle_noise")
# Like the paper's: flat, a gain of 6, a collapse.
PAPER = {"lr 0.001": 34.6, "lr 0.01": 35.1, "lr 0.03": 33.5, "continual": 6.0}
# Like plain SGD with the embedded model: no gain at small rates, no collapse.
WEAK = {"lr 0.001": 29.0, "lr 0.01": 29.2, "lr 0.03": 33.5, "continual": 29.1}


def rows(sgd, adam, streams=STREAMS, **more):
    values = {"no re-alignment": 29.0}
    values |= {f"sgd {key}": value for key, value in sgd.items()}
    values |= {f"adam {key}": value for key, value in adam.items()}
    more = {"benchmark": "cifar100-c", **more}
    return [make_row(label, s, all_=v, **more) for label, v in values.items() for s in streams]


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_the_optimiser_that_fits_more_facts_is_the_verdict(name):
    pair = {"sgd": WEAK, "adam": WEAK, name: PAPER}
    verdict = judge(SETTLE, rows(**pair))
    assert verdict.optimiser == name and verdict.comparable
    assert all(fact.fits for fact in verdict.facts[name]) and len(verdict.facts[name]) == 4
    assert f"verdict: {name}" in verdict.text() and "18 % of All is left" in verdict.text()


def test_equal_fits_do_not_decide():
    assert judge(SETTLE, rows(WEAK, WEAK)).optimiser is None
    assert "undecided" in judge(SETTLE, rows(PAPER, PAPER)).text()


def test_who_fits_more_but_few_of_the_facts_does_not_win():
    flat = {"lr 0.001": 29.0, "lr 0.01": 29.2, "lr 0.03": 29.1, "continual": 29.1}
    steep = {**flat, "lr 0.03": 20.0}
    verdict = judge(SETTLE, rows(flat, steep, model="mini"))
    counts = {name: sum(fact.fits for fact in facts) for name, facts in verdict.facts.items()}
    assert counts == {"sgd": 1, "adam": 0} and verdict.optimiser is None


def test_another_model_or_fewer_streams_compare_shapes_only():
    for verdict in (
        judge(SETTLE, rows(WEAK, PAPER, model="mini")),
        judge(SETTLE, rows(WEAK, PAPER, streams=STREAMS[:1])),
        judge(SETTLE, rows(WEAK, PAPER, limit=100)),
    ):
        assert not verdict.comparable and len(verdict.facts["adam"]) == 3
        assert "not what the paper used" in verdict.text().replace("\n", " ")


def test_a_verdict_needs_every_row():
    with pytest.raises(InputError, match="adam continual"):
        judge(SETTLE, [r for r in rows(WEAK, PAPER) if r["label"] != "adam continual"])
    with pytest.raises(InputError, match="bench settle"):
        judge(SETTLE, [make_row("sgd lr 0.01 [epochs 1]")])  # not what is asked


def test_the_command_runs_and_judges(cifar, model, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path / "cache"))
    run = ["bench", "settle", "--data", str(cifar), "--out", str(tmp_path), "--threads", "1"]
    run += ["--benchmarks", "cifar10-c", "--model", model, "--streams", "fog"]
    assert main([*run, "--dry-run"]) == 0
    assert "9 to run" in capsys.readouterr().out
    assert main(run) == 0
    assert "verdict:" in capsys.readouterr().out
