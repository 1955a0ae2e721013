"""Options from the command line and from a selection."""

from __future__ import annotations

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.options import parse_setting, settings_of, with_method_options, with_settings
from ttgcd.bench.page import commands
from ttgcd.bench.paper_table import build_tables
from ttgcd.errors import InputError
from ttgcd.methods.registry import load_method

MAIN = load_experiment("main")


def row(experiment, label):
    return next(v for v in experiment.variants if v.label == label)


def test_values_are_numbers_truth_values_or_words():
    assert parse_setting("tent++.lr=3e-4") == ("tent++", "lr", 3e-4)
    assert parse_setting("sat++.multi_template=false") == ("sat++", "multi_template", False)
    assert parse_setting("pact.optimiser=adam") == ("pact", "optimiser", "adam")
    assert parse_setting("my.module:Mine.size=2") == ("my.module:Mine", "size", 2)
    for wrong in ("tent++.lr", "lr=3", "=3", ".lr=3", "tent++.=3"):
        with pytest.raises(InputError, match=r"NAME\.OPTION=VALUE"):
            parse_setting(wrong)


def test_a_changed_row_says_so_in_its_label_and_an_unchanged_one_does_not():
    changed = with_settings(MAIN, ["tent++.lr=3e-4", "tent++.steps=1", "ostta++.lr=0.001"])
    assert row(changed, "TENT++ [lr 0.0003]").config == {"lr": 3e-4, "steps": 1}
    assert row(changed, "OSTTA++") == row(MAIN, "OSTTA++")  # 1e-3 is its default


def test_what_a_row_varies_stays_as_the_row_says():
    rates = with_settings(load_experiment("rates"), ["pact.known_rate=0.2", "pact.optimiser=adam"])
    labels = [v.label for v in rates.variants]
    assert "eta 0.10 [optimiser adam]" in labels
    assert "lambda 0.20 [optimiser adam, known_rate 0.2]" in labels
    with pytest.raises(InputError, match="every row of this run fixes it"):
        with_settings(load_experiment("buffer"), ["pact.warmup=64"])


def test_a_row_can_be_named_by_its_label():
    only = with_settings(MAIN, ["PACT (robust seeds).epochs=3"])
    assert row(only, "PACT (robust seeds) [epochs 3]").config["epochs"] == 3
    assert row(only, "PACT") == row(MAIN, "PACT")


def test_an_option_of_a_benchmark_goes_to_its_target_alone():
    changed = with_settings(MAIN, ["imagenet-c.subset=5000", "imagenet-c.distinct_names=true"])
    options = {target.name: target.options for target in changed.targets}
    assert options["imagenet-c"] == {"subset": 5000, "distinct_names": True}
    assert options["cifar10-c"] == {}
    with pytest.raises(InputError, match="not domainnet"):
        with_settings(MAIN, ["domainnet.severity=1"])


def test_unknown_names_and_options_are_errors():
    with pytest.raises(InputError, match=r"--set tnt\+\+: no such method"):
        with_settings(MAIN, ["tnt++.lr=1"])
    with pytest.raises(InputError, match="learning"):
        with_settings(MAIN, ["tent++.learning=1"])
    with pytest.raises(InputError, match="lr"):
        with_settings(MAIN, ["tent++.lr=-1"])


def test_a_selection_passes_over_methods_that_are_not_here():
    rates = load_experiment("rates")
    assert with_method_options(rates, {"tent++": {"lr": 1e-4}}, must_match=False) == rates


def test_changed_rows_have_their_own_line_beside_the_same_published_figures():
    rows = [make_row("TENT++", all_=40.0), make_row("TENT++ [lr 0.0003]", all_=44.0)]
    block = build_tables(MAIN, rows)[0].blocks[0]
    lines = {line.label: line.cells[0] for line in block.lines}
    assert (lines["TENT++"].mean, lines["TENT++ [lr 0.0003]"].mean) == (40.0, 44.0)
    assert lines["TENT++"].paper == lines["TENT++ [lr 0.0003]"].paper
    labels = [line.label for line in block.lines]
    assert labels.index("TENT++ [lr 0.0003]") == labels.index("TENT++") + 1


def test_rows_with_benchmark_options_have_a_table_of_their_own_that_says_so():
    rows = [make_row(all_=40.0), make_row(all_=60.0, options={"severity": 3}, run_id="other")]
    tables = build_tables(MAIN, rows)
    assert len(tables) == 2
    assert "cifar10-c WITH severity 3: not the paper's setting" in tables[1].warnings


def test_the_way_back_from_a_row_to_the_command():
    changed = with_settings(MAIN, ["tent++.lr=0.0003", "tent++.split_features=frozen"])
    variant = next(v for v in changed.variants if v.method == "tent++")
    made = make_row(
        variant.label,
        method="tent++",
        config=load_method("tent++", **variant.config).config(),
        options={"severity": 3},
    )
    settings = [told.removeprefix("--set '")[:-1] for told in settings_of(MAIN, made, {})]
    assert sorted(settings) == [
        "cifar10-c.severity=3",
        "tent++.lr=0.0003",
        'tent++.split_features="frozen"',
    ]
    (line,) = commands(MAIN, [made], {})
    assert "--set 'tent++.lr=0.0003'" in line and '--methods "TENT++"' in line
    again = with_settings(MAIN, settings)
    assert variant.label in [v.label for v in again.variants]


def test_rows_at_their_selected_arms_have_one_command():
    arms = {"tent++": {"lr": 0.0003}, "hilo++": {"w_sem": 0.25}, "sat++": {}}
    chosen = with_method_options(MAIN, arms, must_match=False)
    rows = [
        make_row(v.label, method=v.method, config=load_method(v.method, **v.config).config())
        for v in chosen.variants
        if v.method in arms
    ]
    told = commands(MAIN, rows, arms)
    assert [("--selected" in line, "--set" in line) for line in told] == [
        (False, False),
        (True, False),
    ]
    assert '--methods "HiLo++,TENT++" --selected results/selected.json' in told[1]
    other = commands(MAIN, rows, {"tent++": {"lr": 0.1}})
    assert sum("--set" in line for line in other) == 2
