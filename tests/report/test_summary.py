from __future__ import annotations

import json

import numpy as np
import pytest

from tests.report.streams import answers, batch, summarise
from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.report import StreamSummary
from ttgcd.storage.state import State


def through_json(state: State) -> State:
    return State(dict(state.arrays), json.loads(json.dumps(state.values)))


def assert_same(one: StreamSummary, other: StreamSummary) -> None:
    a, b = one.state(), other.state()
    assert a.values == b.values
    assert a.arrays.keys() == b.arrays.keys()
    for name, array in a.arrays.items():
        np.testing.assert_array_equal(array, b.arrays[name], err_msg=name)


def test_counts_agree_with_counting_by_hand():
    summary = summarise(3, 2, 700)
    category = answers(0, 700, 5).category
    np.testing.assert_array_equal(summary.counts, np.bincount(category, minlength=5))


def test_memory_does_not_grow_with_the_stream():
    def size(samples: int) -> tuple[int, int]:
        summary = StreamSummary(4, 3, map_points=50, exemplars=5, waiting=100)
        for start in range(0, samples, 500):
            rows = answers(start, 500, 7, final=start % 1000 == 0)  # half are never answered
            summary.write(batch(start, 500), rows)
        state = summary.state()
        arrays = sum(array.nbytes for array in state.arrays.values())
        entries = len(state.values["waiting"]) + len(state.values["sample"]["ids"])
        return arrays, entries + len(state.values["typical"]["ids"])

    assert size(3000) == size(9000)


@pytest.mark.parametrize("stop", [50, 350, 650])
def test_resumed_equals_uninterrupted(stop):
    whole = summarise(3, 2, 700)
    first = summarise(3, 2, stop)
    resumed = StreamSummary(3, 2, map_points=40)
    resumed.load(through_json(first.state()))
    assert_same(first, resumed)
    for start in range(stop, 700, 50):
        resumed.write(batch(start, 50), answers(start, 50, 5))
    assert_same(whole, resumed)


def test_a_state_is_a_copy_and_fits_only_its_task():
    summary = summarise(3, 2, 100)
    state = summary.state()
    before = {name: array.copy() for name, array in state.arrays.items()}
    summary.write(batch(100, 50), answers(100, 50, 5))
    for name, array in before.items():
        np.testing.assert_array_equal(state.arrays[name], array)
    with pytest.raises(InputError):
        StreamSummary(3, 3, map_points=40).load(state)


def test_revisions_after_a_warm_up_replace_the_provisional_answers():
    provisional = StreamSummary(3, 2, map_points=500)
    for start in (0, 100):
        provisional.write(batch(start, 100), answers(start, 100, 3, seed=1, final=False))
    assert provisional.counts.sum() == 0
    # The third batch ends the warm-up in its middle: 250 revised rows and 50 new ones.
    provisional.write(batch(200, 100), answers(0, 300, 5))
    direct = StreamSummary(3, 2, map_points=500)
    for start in (0, 100, 200):
        direct.write(batch(start, 100), answers(start, 100, 5))
    np.testing.assert_array_equal(provisional.counts, direct.counts)
    for c in range(5):
        assert {e["id"] for e in provisional.exemplars(c)} == {e["id"] for e in direct.exemplars(c)}
    np.testing.assert_array_equal(
        provisional.map_sample()["category"], direct.map_sample()["category"]
    )


def test_a_method_that_answers_at_the_end_without_features():
    summary = StreamSummary(3, 2, map_points=500)
    for start in range(0, 300, 100):
        early = answers(start, 100, 5, seed=1, final=False)
        summary.write(batch(start, 100), early)
    late = answers(0, 300, 5)
    summary.write(None, Answer.make(0, late.category, late.score))
    np.testing.assert_array_equal(summary.counts, np.bincount(late.category, minlength=5))
    sample = summary.map_sample()
    np.testing.assert_array_equal(sample["category"], late.category[sample["index"]])
    features = answers(0, 300, 5, seed=1).features
    np.testing.assert_allclose(sample["features"], features[sample["index"]], atol=1e-3)
    best = summary.exemplars(0)[0]
    own = np.flatnonzero(late.category == 0)
    assert best["index"] == own[late.score[own].argmax()]
    assert best["id"] == f"img-{best['index']}" and best["position"] == best["index"]


def test_a_method_that_is_silent_until_the_end():
    summary = StreamSummary(2, 1, map_points=10)
    for start in (0, 50):
        summary.write(batch(start, 50), Answer.empty())
    summary.write(None, answers(0, 100, 3))
    assert summary.counts.sum() == 100
    assert len(summary.map_sample()["id"]) == 10
    assert all(summary.exemplars(c) for c in range(3))


def test_the_last_of_two_answers_in_one_write_counts():
    both = Answer.concat([answers(0, 20, 1), answers(0, 20, 1)])
    both.category[20:] = 2
    summary = StreamSummary(2, 1)
    summary.write(batch(0, 20), both)
    assert summary.counts.tolist() == [0, 0, 20]


def test_scores_beyond_one_are_no_seeds():
    """Scout's scores are no cosines: its most typical samples lie above 1."""
    score = np.array([0.2, 1.3, 1.0, 1.2, 0.9])
    summary = StreamSummary(1, 1)
    summary.write(batch(0, 5), Answer.make(0, np.ones(5, int), score))
    assert [e["index"] for e in summary.exemplars(1)] == [1, 3, 4, 0, 2]


def test_exemplars_are_the_best_scores():
    summary = summarise(3, 2, 400)
    rows = answers(0, 400, 5)
    for c in range(5):
        own = np.sort(rows.score[rows.category == c])
        np.testing.assert_allclose([e["score"] for e in summary.exemplars(c)], own[::-1][:12])


def test_the_sample_that_a_category_began_with_comes_last():
    rows = answers(0, 30, 1)
    rows.category[:] = 1
    rows.score[7] = 1.0
    summary = StreamSummary(1, 1, exemplars=40)
    summary.write(batch(0, 30), rows)
    shown = [e["index"] for e in summary.exemplars(1)]
    assert len(shown) == 30 and shown[-1] == 7


def test_near_duplicates_are_shown_once():
    rows = answers(0, 60, 1)
    rows.features[10:] = rows.features[0]  # frames of one still scene
    rows.score[:] = np.linspace(0.5, 0.9, 60)
    summary = StreamSummary(1, 0, exemplars=12)
    for start in range(0, 60, 20):
        summary.write(batch(start, 20), rows.at(np.arange(start, start + 20)))
    shown = [e["index"] for e in summary.exemplars(0)]
    assert shown[0] == 59  # the best of the still scene
    assert sorted(shown[1:]) == list(range(1, 10))


def test_the_map_sample_is_uniform_and_independent_of_batches():
    one = summarise(2, 1, 600, step=50).map_sample()
    other = summarise(2, 1, 600, step=37).map_sample()
    np.testing.assert_array_equal(one["index"], other["index"])
    assert len(one["index"]) == 40
    counts = np.zeros(10)
    for seed in range(60):
        summary = StreamSummary(1, 0, seed=seed, map_points=20)
        for start in range(0, 200, 100):
            summary.write(batch(start, 100), answers(start, 100, 1))
        counts += np.bincount(summary.map_sample()["index"] // 20, minlength=10)
    assert counts.sum() == 1200
    assert abs(counts - 120).max() < 50  # five standard deviations


def test_a_category_beyond_those_announced_is_counted():
    summary = StreamSummary(2, 1)
    summary.write(batch(0, 5), Answer.make(0, np.full(5, 7), np.ones(5)))
    assert summary.counts.tolist() == [0, 0, 0, 0, 0, 0, 0, 5]
    assert len(summary.exemplars(7)) == 5


def test_a_category_below_zero_is_refused():
    with pytest.raises(ValueError, match="category -1"):
        StreamSummary(2, 1).write(batch(0, 5), Answer.make(0, np.full(5, -1), np.ones(5)))
