"""The paper's claims against rows."""

from __future__ import annotations

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.claims import CLAIMS, examine, markdown
from ttgcd.bench.experiment import load_experiment


def verdicts(name, rows):
    return {found.claim.text: found.verdict for found in examine(name, rows)}


def rows(name, values, **more):
    """One row a label; the values are All."""
    return [make_row(label, all_=value, experiment=name, **more) for label, value in values.items()]


def field(pact, rivals=40.0, **more):
    """PACT among all seven baselines."""
    labels = [v.label for v in load_experiment("main").variants if v.in_paper]
    return rows("main", {label: pact if label == "PACT" else rivals for label in labels}, **more)


def test_first_is_first_of_the_eight_and_extras_do_not_count():
    led = field(50.0) + rows("main", {"k-means": 90.0})
    assert set(verdicts("main", led).values()) == {"yes"}
    assert set(verdicts("main", field(39.0)).values()) == {"no"}


def test_first_means_ahead_of_a_baseline_at_its_selected_setting_too():
    tuned = rows("main", {"TENT++ [lr 0.0003]": 51.0})
    assert set(verdicts("main", field(50.0) + tuned).values()) == {"no"}
    one_short = [row for row in field(50.0) if row["label"] != "SAT++"]
    assert verdicts("main", one_short + rows("main", {"TENT++ [lr 0.0003]": 10.0})) == {}


def test_a_row_with_fewer_seeds_than_its_twin_does_not_shorten_the_comparison():
    tuned = {v.label for v in load_experiment("main").variants if v.in_paper} - {"PACT"}
    selected = [
        make_row(f"{label} [lr 1]", seed=seed, all_=40.0) for label in tuned for seed in (0, 1)
    ]
    pact = [make_row("PACT", seed=seed, all_=50.0 + 2 * seed) for seed in (0, 1)]
    defaults = rows("main", {label: 45.0 for label in tuned})  # seed 0 alone
    (every, _) = examine("main", [*pact, *selected, *defaults])
    assert every.figures == "cifar10-c: PACT 51.0, " + every.figures.rpartition(", ")[2]
    assert every.figures.endswith("[lr 1] 40.0")


def test_first_is_not_claimed_before_all_baselines_are_there():
    assert verdicts("main", rows("main", {"PACT": 50.0, "TENT++": 40.0})) == {}
    beaten = rows("main", {"PACT": 50.0, "TENT++": 51.0})
    assert set(verdicts("main", beaten).values()) == {"no"}


def test_a_claim_may_hold_on_one_benchmark_alone():
    both = field(50.0) + field(30.0, benchmark="cifar100-c")
    assert set(verdicts("main", both).values()) == {"on cifar10-c"}


def test_rows_are_compared_on_the_streams_they_share():
    some = [*field(50.0), make_row("PACT", "snow", all_=10.0)]
    assert set(verdicts("main", some).values()) == {"yes"}


def test_the_fuller_table_comes_first_and_then_whole_streams():
    whole = field(50.0)
    assert set(verdicts("main", whole + field(10.0, limit=100)).values()) == {"yes"}
    few = rows("main", {"PACT": 50.0, "TENT++": 60.0})
    assert set(verdicts("main", few + field(50.0, limit=100)).values()) == {"yes"}


@pytest.mark.parametrize(
    "values,holds",
    [((20, 25, 28, 29, 28.5), "yes"), ((20, 25, 24, 29, 28), "no"), ((20, 25, 28, 29, 31), "no")],
)
def test_buffer_rises_then_falls(values, holds):
    sizes = (128, 256, 512, 1024, 2048)
    measured = rows("buffer", {f"W {w}": float(v) for w, v in zip(sizes, values)})
    assert list(verdicts("buffer", measured).values()) == [holds]


def test_collapse_and_harmlessness():
    measured = rows(
        "continual",
        {
            **{"one-shot (PACT)": 40.0, "continual lr 1e-05": 40.1, "continual lr 0.01": 39.0},
            **{"one-shot (Adam)": 42.0, "continual lr 0.01 (Adam)": 9.0},
        },
    )
    assert list(verdicts("continual", measured).values()) == ["yes", "no", "yes"]


def test_rates_need_both_directions_for_both_rates():
    def row(label, known, novel):
        return make_row(label, metrics={"all": 0.0, "known": known, "novel": novel})

    base = [row("eta 0.05", 50, 40), row("lambda 0.10", 50, 40), row("eta 0.60", 55, 30)]
    assert list(verdicts("rates", [*base, row("lambda 0.40", 52, 35)]).values()) == ["yes"]
    assert list(verdicts("rates", [*base, row("lambda 0.40", 52, 45)]).values()) == ["no"]


def test_without_the_rows_nothing_is_said():
    for claim in CLAIMS:
        assert examine(claim.experiment, [make_row("something else")]) == []


def test_every_label_of_a_claim_is_a_row_of_its_experiment():
    """With all rows of an experiment there, each of its claims gets a verdict."""
    for name in dict.fromkeys(claim.experiment for claim in CLAIMS):
        labels = [variant.label for variant in load_experiment(name).variants]
        every = [make_row(label, forwards=2.0) for label in labels]
        told = examine(name, every)
        assert len(told) == sum(claim.experiment == name for claim in CLAIMS), name
        assert f"`ttgcd bench table {name}`" in markdown(told)
