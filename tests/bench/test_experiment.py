"""Experiments as data files."""

from __future__ import annotations

import pytest

from ttgcd.bench.experiment import (
    COLUMNS,
    experiment_names,
    load_experiment,
    published_figures,
)
from ttgcd.datasets import BENCHMARKS
from ttgcd.errors import InputError
from ttgcd.methods.registry import load_method

TABLES_AND_FIGURES = {
    *("main", "domainnet", "cub", "components", "buffer", "estimated_l", "rates", "e_min"),
    *("warmup_lr", "cost", "sweeps", "continual", "stability", "iconshift", "settle"),
    "realign_depth",
    "clicks",
    "fashion",
}


def test_every_table_and_figure_of_the_paper_is_an_experiment():
    assert set(experiment_names()) == TABLES_AND_FIGURES


@pytest.mark.parametrize("name", experiment_names())
def test_an_experiment_holds_together(name):
    experiment = load_experiment(name)
    assert experiment.title and experiment.question.endswith((")", "?"))
    assert experiment.columns in COLUMNS
    assert {target.name for target in experiment.targets} <= set(BENCHMARKS)
    labels = [variant.label for variant in experiment.variants]
    assert len(set(labels)) == len(labels)
    values = published_figures(experiment.published)["values"]
    rows = {variant.published for variant in experiment.variants}
    groups = {variant.group for variant in experiment.variants}
    assert set(values) <= (groups if experiment.best_of_group else rows)


@pytest.mark.parametrize("name", experiment_names())
def test_every_variant_is_a_configuration_that_its_method_takes(name):
    for variant in load_experiment(name).variants:
        config = load_method(variant.method, **variant.config).config()
        given = {**variant.config}
        stage = given.pop("realign", None)
        assert {key: config[key] for key in given} == given
        if stage is not None:
            assert {**config["realign"], **stage} == config["realign"]


def test_no_arm_of_a_sweep_equals_its_baseline():
    for experiment in (load_experiment("sweeps"), load_experiment("warmup_lr")):
        seen = [
            (v.method, sorted(load_method(v.method, **v.config).config().items(), key=str))
            for v in experiment.variants
        ]
        assert all(entry not in seen[:place] for place, entry in enumerate(seen))


def test_selecting():
    main = load_experiment("main")
    assert [v.label for v in main.select(methods=["PACT", "tent++"]).variants] == ["PACT", "TENT++"]
    assert len(main.select(methods=["pact"]).variants) == 3  # every row of the method
    own = main.select(methods=["pack.module:MyMethod"]).variants
    assert [(v.label, v.method) for v in own] == [("MyMethod", "pack.module:MyMethod")]
    moved = load_experiment("warmup_lr").select(benchmarks=["cifar10-c"])
    assert [(t.name, t.streams) for t in moved.targets] == [("cifar10-c", "held_out")]
    assert main.select(streams=["fog"], seeds=[4], models=["mini"]).seeds == (4,)


def test_an_unknown_name_lists_the_choices():
    with pytest.raises(InputError, match=r"choose one of buffer, .*main"):
        load_experiment("tabel1")
