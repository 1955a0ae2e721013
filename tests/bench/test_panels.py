"""The numbers behind the figures."""

from __future__ import annotations

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.panels import (
    decile_curves,
    measured_blocks,
    shown_blocks,
    shown_labels,
    time_panels,
    tradeoff_panel,
    varied_curves,
)
from ttgcd.bench.paper_table import build_tables
from ttgcd.bench.render import render

MAIN = load_experiment("main")


def panel_of(rows):
    return tradeoff_panel(MAIN, measured_blocks(build_tables(MAIN, rows)[0]))


def test_the_tradeoff_is_one_panel_of_means_over_the_three_benchmarks():
    panel = panel_of([])
    published = {point.label: point for point in panel.points}
    assert panel.title == "mean over cifar10-c, cifar100-c, imagenet-c"
    assert len(published) == 8 and not any(point.measured for point in panel.points)
    ours = published["PACT"]
    assert ours.x == pytest.approx((65.39 + 33.67 + 24.84) / 3)
    assert ours.y == pytest.approx((47.24 + 24.55 + 19.56) / 3)


def test_a_selected_arm_is_shown_in_the_place_of_its_default():
    tuned = "TENT++ [lr 0.0003]"
    panel = panel_of([make_row("TENT++", all_=40.0), make_row(tuned, all_=45.0)])
    shown = [p for p in panel.points if p.label.startswith("TENT++")]
    assert [(p.label, p.measured, p.in_paper) for p in shown] == [
        (tuned, True, True),
        (tuned, False, True),
    ]
    assert panel.best(measured=True) == (50.0, 40.0)


def test_dashed_lines_are_the_best_baselines_without_pact_and_without_our_extras():
    rows = [
        make_row("TENT++", all_=40.0),
        make_row("OSTTA++", all_=42.0),
        make_row("PACT", all_=70.0),
        make_row("k-means", all_=90.0),
    ]
    panel = panel_of(rows)
    assert panel.title == "cifar10-c"  # only what was measured
    assert panel.best(measured=True) == (47.0, 37.0)  # OSTTA++: Known 42 + 5, Novel 42 - 5
    assert panel.best(measured=False) is not None
    assert {p.label for p in panel.points if not p.in_paper} == {"k-means"}


def test_a_method_that_lacks_a_benchmark_has_no_mean():
    rows = [make_row("PACT", benchmark=b) for b in ("cifar10-c", "cifar100-c")]
    rows.append(make_row("TENT++", benchmark="cifar10-c"))
    measured = [point.label for point in panel_of(rows).points if point.measured]
    assert measured == ["PACT"]


def test_what_only_the_paper_measured_is_shown_behind_ours():
    buffer = load_experiment("buffer")
    rows = [make_row("W 128", benchmark="cifar10-c"), make_row("W 256", benchmark="cifar10-c")]
    blocks = shown_blocks(build_tables(buffer, rows)[0])
    assert [(block.title, block.measured) for block in blocks] == [
        ("cifar10-c", True),
        ("cifar100-c", False),
        ("domainnet", False),
    ]
    told = {line.label: line.cells[0].paper for line in blocks[1].lines}
    assert told["W 128"] == 23.36 and told["W 2048"] == 28.66


def test_published_figures_that_several_series_share_are_one_curve_of_nobody():
    rates = load_experiment("warmup_lr")
    rows = [
        make_row(f"{name} lr {lr}", "saturate", all_=value, benchmark="cifar100-c")
        for name, value in (("sgd", 30.0), ("adam", 40.0))
        for lr in ("0.01", "0.001")
    ]
    curves = varied_curves(rates, shown_blocks(build_tables(rates, rows)[0]))
    every = [curve for curve in curves if curve.column == "All"]
    ours = {curve.series: curve.points for curve in every if curve.measured}
    assert ours == {
        "sgd": ((0.001, 30.0), (0.01, 30.0)),
        "adam": ((0.001, 40.0), (0.01, 40.0)),
    }
    (told,) = (curve for curve in every if not curve.measured)
    assert told.series == "" and told.points == (
        *((0.001, 34.6), (0.003, 34.27)),
        *((0.01, 35.09), (0.03, 33.54)),
    )


def test_a_figure_shows_a_row_with_other_options_in_the_place_of_its_default():
    assert shown_labels(["A", "B", "A [lr 1]", "B", "C"]) == ["B", "A [lr 1]", "C"]


def test_time_stands_beside_the_mean_over_all_streams_not_the_one_that_was_timed():
    cost = load_experiment("cost")
    rows = [
        make_row("PACT", "clipart", all_=10.0, benchmark="domainnet", ms_per_batch=5.0),
        make_row("TENT++", "clipart", all_=10.0, benchmark="domainnet", ms_per_batch=50.0),
    ]
    whole = [
        make_row("PACT", stream, all_=value, benchmark="domainnet", streams=2)
        for stream, value in (("clipart", 10.0), ("real", 60.0))
    ]
    panel, told_alone = time_panels(cost, build_tables(cost, rows)[0], rows, whole)
    assert told_alone.title.startswith("cifar100-c")  # what only the paper has comes behind
    assert not any(point.measured for point in told_alone.points)
    ours = [point for point in panel.points if point.measured]
    assert [(point.label, point.x, point.y) for point in ours] == [("PACT", 5.0, 35.0)]
    told = {point.label: point for point in panel.points if not point.measured}
    assert (told["PACT"].x, told["PACT"].y) == (76, 46.89)
    # Half of the streams is no mean over them.
    for panel in time_panels(cost, build_tables(cost, rows)[0], rows, whole[:1]):
        assert not any(point.measured for point in panel.points)


def test_stability_is_told_by_stream():
    experiment = load_experiment("stability")
    rows = [
        make_row(stream=stream, deciles=[base] * 5 + [base + 2.0] * 5, benchmark="domainnet")
        for stream, base in (("real", 50.0), ("sketch", 30.0))
    ]
    curves = decile_curves(rows, "domainnet", "PACT")
    assert [(c.name, c.deciles[0], c.gain) for c in curves] == [
        ("real", 50.0, 2.0),
        ("sketch", 30.0, 2.0),
    ]
    others = [{**row, "label": "Scout"} for row in rows]
    *streams, mean = decile_curves(rows + others, "domainnet", "PACT", ["Scout", "nobody"])
    assert streams == curves and mean.is_mean
    assert (mean.name, mean.deciles[0], mean.gain) == ("Scout, mean", 40.0, 2.0)
    text = render(build_tables(experiment, rows)[0])
    assert "Scout by stream" not in text
    assert "Scout by stream" in render(build_tables(experiment, rows + others)[0])
    assert "2nd - 1st half" in text and "sketch" in text
    assert text.count("PACT by stream") == 1  # not below a benchmark without a row
