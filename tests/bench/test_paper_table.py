"""Tables: the right means, the published figures beside them, and nothing left unsaid."""

from __future__ import annotations

import csv
import io
import math
from statistics import stdev

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.experiment import experiment_names, load_experiment
from ttgcd.bench.paper_table import build_tables
from ttgcd.bench.render import FORMATS, render
from ttgcd.errors import InputError

MAIN = load_experiment("main")


def cell(table, block, label, column="All"):
    found = next(b for b in table.blocks if b.title == block)
    line = next(line for line in found.lines if line.label == label)
    return line.cells[found.columns.index(column)]


def test_mean_over_streams_then_mean_and_deviation_over_seeds():
    rows = [
        make_row(stream=stream, seed=seed, all_=value, streams=2)
        for seed, values in enumerate([(50, 60), (52, 66)])
        for stream, value in zip(("fog", "snow"), values)
    ]
    ours = cell(build_tables(MAIN, rows)[0], "cifar10-c", "PACT")
    assert ours.mean == 57.0  # (55 + 59) / 2
    assert ours.std == pytest.approx(stdev([55, 59]))
    assert (ours.seeds, ours.streams) == (2, 2)
    assert (ours.paper, ours.paper_std) == (56.31, 0.58)
    assert ours.difference == pytest.approx(0.69)


def test_a_seed_with_missing_streams_does_not_shift_the_mean():
    rows = [make_row(stream="fog", seed=0, all_=10), make_row(stream="snow", seed=0, all_=30)]
    rows.append(make_row(stream="fog", seed=1, all_=90))  # still running
    ours = cell(build_tables(MAIN, rows)[0], "cifar10-c", "PACT")
    assert (ours.mean, ours.seeds, ours.partial) == (20.0, 1, False)


def test_fewer_streams_than_other_rows_are_marked_and_cannot_be_best():
    rows = [make_row("PACT", s, all_=40) for s in ("fog", "snow")]
    rows.append(make_row("TENT++", "fog", all_=90))
    rows += [make_row("SAT++", s, all_=30) for s in ("fog", "snow")]
    table = build_tables(MAIN, rows)[0]
    assert cell(table, "cifar10-c", "TENT++").partial
    assert cell(table, "cifar10-c", "PACT").best
    text = render(table)
    assert "90.00†" in text and "† mean over fewer streams" in text


def test_best_is_the_largest_accuracy_and_the_smallest_cost():
    rows = [make_row("PACT", all_=60), make_row("TENT++", all_=40)]
    table = build_tables(MAIN, rows)[0]
    assert cell(table, "cifar10-c", "PACT").best and not cell(table, "cifar10-c", "TENT++").best
    assert cell(table, "cifar10-c", "UniEnt++", "Known").paper_best
    quick = [make_row("PACT", ms_per_batch=5.0), make_row("TENT++", ms_per_batch=50.0)]
    cost = build_tables(load_experiment("cost"), quick)[0]
    assert cell(cost, "cifar10-c", "PACT", "ms/batch").best


def test_another_model_is_said_in_every_format():
    rows = [make_row(model="mini", fingerprint="f00dfeed00001111")]
    for form in FORMATS:
        assert "NOT THE PAPER'S MODEL" in render(build_tables(MAIN, rows)[0], form), form
    assert "NOT THE PAPER'S" not in render(build_tables(MAIN, [make_row()])[0])


def test_rows_that_cannot_be_compared_are_not_mixed():
    rows = [make_row(all_=50), make_row(all_=20, model="mini"), make_row(all_=10, limit=100)]
    tables = build_tables(MAIN, rows)
    assert [cell(t, "cifar10-c", "PACT").mean for t in tables] == [50.0, 10.0, 20.0]
    assert "ONLY 100 IMAGES" in render(tables[1])
    assert len(build_tables(MAIN, rows, ["mini"])) == 1
    with pytest.raises(InputError, match="no row of main"):
        build_tables(MAIN, rows, ["other"])


def test_two_weights_under_one_name_are_said():
    rows = [make_row(), make_row("TENT++", fingerprint="other")]
    assert "MIXED WEIGHTS" in render(build_tables(MAIN, rows)[0])


def test_missing_streams_and_made_up_data_are_said():
    rows = [make_row(streams=15, data_notes=["made here, not the published files"])]
    text = render(build_tables(MAIN, rows)[0])
    assert "cifar10-c: 1 of 15 streams" in text
    assert "made here, not the published files" in text


def test_an_experiment_that_names_its_streams_misses_no_others():
    depth = load_experiment("realign_depth")
    named = ("line", "solid", "emoji", "multicolour")
    kinds = {"benchmark": "iconshift", "label": "last block", "streams": 8}
    whole = [make_row(stream=stream, **kinds) for stream in named]
    assert "streams" not in " ".join(build_tables(depth, whole)[0].warnings)
    assert "iconshift: 3 of 4 streams" in build_tables(depth, whole[:3])[0].warnings
    # The paper's cost table is one stream of each benchmark; so it is elsewhere.
    moved = build_tables(load_experiment("cost"), [make_row("PACT", streams=15)])[0]
    assert "streams" not in " ".join(moved.warnings)


def test_streams_side_by_side_with_their_average():
    experiment = load_experiment("domainnet")
    rows = [
        make_row(benchmark="domainnet", stream=s, all_=v) for s, v in (("real", 60), ("sketch", 40))
    ]
    table = build_tables(experiment, rows)[0]
    assert cell(table, "domainnet, All", "PACT", "real").mean == 60
    assert cell(table, "domainnet, All", "PACT", "Average").mean == 50
    assert cell(table, "domainnet, All", "PACT", "Average").paper == 46.89
    assert cell(table, "domainnet, Novel", "PACT", "real").paper == 57.01
    assert math.isnan(cell(table, "domainnet, All", "PACT", "clipart").mean)


def test_backbones_side_by_side_and_a_model_of_ones_own_beside_the_first():
    experiment = load_experiment("cub")
    large = "openai/clip-vit-large-patch14"
    table = build_tables(experiment, [make_row(benchmark="cub-c", model=large, all_=20)])[0]
    assert cell(table, f"cub-c, {large}", "PACT").difference == pytest.approx(20 - 23.59)
    own = build_tables(experiment, [make_row(benchmark="cub-c", model="mini", all_=9)])[0]
    assert cell(own, "cub-c, mini", "PACT").paper == 18.20


def test_a_benchmark_of_ones_own_has_no_published_figure():
    table = build_tables(MAIN, [make_row(benchmark="iconshift")])[0]
    assert math.isnan(cell(table, "iconshift", "PACT").paper)


def test_a_method_of_ones_own_gets_a_row():
    table = build_tables(MAIN, [make_row("MyMethod", method="mine:MyMethod", answers="end")])[0]
    assert cell(table, "cifar10-c", "MyMethod").mean == 50
    assert "end, 1 pass" in render(table)


def test_best_arm_of_a_sweep():
    rows = [
        make_row(f"TENT++ {arm}", benchmark="cifar100-c", all_=value)
        for arm, value in (("baseline", 20), ("lr 10^-3.5", 22))
    ]
    table = build_tables(load_experiment("sweeps"), rows)[0]
    block = "cifar100-c, best arm of each method"
    assert cell(table, block, "TENT++: lr 10^-3.5").mean == 22
    assert cell(table, block, "TENT++: lr 10^-3.5").paper == 24.86


def test_estimates_are_told():
    row = make_row(novel="estimated", novel_given=7)
    text = render(build_tables(load_experiment("estimated_l"), [row])[0])
    assert "cifar10-c: estimated L = 7.0 (mean over streams), true 5, published 5" in text


def test_a_row_that_was_measured_with_other_options_alone_takes_the_place_of_its_default():
    main = load_experiment("main")
    text = render(build_tables(main, [make_row("TENT++ [lr 0.0003]")])[0])
    mine, told = text.split("cifar100-c")
    assert "TENT++ [lr 0.0003]" in mine and "TENT++  " not in mine.replace("BATCLIP++", "")
    assert "TENT++ [" not in told and "TENT++  " in told, "the paper's figures stand there once"
    both = [make_row("TENT++ [lr 0.0003]"), make_row("TENT++")]
    mine = render(build_tables(main, both)[0]).split("cifar100-c")[0].replace("BATCLIP++", "")
    assert mine.count("TENT++") == 2


def test_a_metric_that_is_not_defined_leaves_an_empty_cell():
    row = make_row(metrics={"all": 10.0, "known": 10.0, "novel": None})
    assert math.isnan(cell(build_tables(MAIN, [row])[0], "cifar10-c", "PACT", "Novel").mean)


@pytest.mark.parametrize("name", experiment_names())
@pytest.mark.parametrize("form", FORMATS)
def test_every_experiment_prints_with_and_without_results(name, form):
    experiment = load_experiment(name)
    target = experiment.targets[0]
    where = {"benchmark": target.name, "stream": (target.streams or ("fog",))[0]}
    rows = [make_row(v.label, experiment=name, **where) for v in experiment.variants]
    for row in rows:  # an experiment may measure something of its own
        row["metrics"] |= {metric: 50.0 for metric in experiment.metrics}
    for given in ([], rows):
        table = build_tables(experiment, given)[0]
        printed = render(table, form).replace("\\_", "_")
        assert not given or experiment.variants[0].label in printed


def test_csv_reads_back():
    text = render(build_tables(MAIN, [make_row()])[0], "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    mine = next(r for r in rows if r["method"] == "PACT" and r["column"] == "All")
    assert (mine["mean"], mine["paper"], mine["difference"]) == ("50.00", "56.31", "-6.31")


def test_latex_and_markdown_mark_the_best():
    rows = [make_row("PACT", all_=60), make_row("TENT++", all_=40)]
    table = build_tables(MAIN, rows)[0]
    assert r"\textbf{60.00}" in render(table, "latex")
    assert "**60.00**" in render(table, "markdown")
    assert "TENT++ " in render(table, "latex") and "_" not in render(table, "latex").replace(
        r"\_", ""
    )


def test_a_row_of_ours_without_a_measurement_does_not_show_the_papers_figure():
    block = build_tables(MAIN, [make_row("PACT")])[0].blocks[0]
    assert "PACT (Adam)" not in [line.label for line in block.lines]
    measured = build_tables(MAIN, [make_row("PACT (Adam)", all_=40.0)])[0]
    assert cell(measured, "cifar10-c", "PACT (Adam)").paper == 56.31
