"""Split accuracy against brute force over every assignment of groups to classes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from ttgcd.errors import InputError
from ttgcd.evaluation import SplitAccuracyMetric, accuracy_by_part, split_accuracy


def optimal_splits(predicted, true, n_known):
    """Every (all, known, novel) that an optimal assignment may give: tries all permutations."""
    size = int(max(predicted.max(), true.max())) + 1
    outcomes = []
    for order in permutations(range(size)):
        right = np.array([order[p] == t for p, t in zip(predicted, true)])
        known = true < n_known
        parts = [right, right[known], right[~known]]
        outcomes.append(tuple(part.mean() if len(part) else np.nan for part in parts))
    best = max(outcome[0] for outcome in outcomes)
    return [outcome for outcome in outcomes if outcome[0] == best]


@pytest.mark.parametrize("seed", range(12))
def test_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    classes, groups, n_known = 6, int(rng.integers(2, 7)), int(rng.integers(1, 6))
    true = rng.integers(0, classes, 60)
    predicted = np.where(rng.random(60) < 0.5, (true * 5 + 1) % groups, rng.integers(0, groups, 60))
    result = split_accuracy(predicted, true, n_known)
    assert any(
        np.allclose(result, outcome, equal_nan=True)
        for outcome in optimal_splits(predicted, true, n_known)
    )


def test_one_assignment_for_all_not_one_per_half():
    # Group 0 holds most of both classes; it can serve only one of them.
    true = np.array([0] * 10 + [1] * 8)
    predicted = np.zeros(18, dtype=int)
    assert split_accuracy(predicted, true, 1) == (10 / 18, 1.0, 0.0)


def test_novel_group_may_match_a_known_class():
    assert split_accuracy([2, 2, 3, 3], [0, 0, 1, 1], n_known=2).known == 1.0


def test_fewer_groups_than_classes_leave_classes_at_zero():
    true = np.repeat([0, 1, 2, 3], 5)
    predicted = np.repeat([0, 1, 2, 2], 5)  # novel classes 2 and 3 in one group
    assert split_accuracy(predicted, true, 2) == (0.75, 1.0, 0.5)


def test_more_groups_than_classes():
    true = np.repeat([0, 1], 6)
    predicted = np.array([0] * 6 + [1, 1, 1, 2, 2, 3])  # novel class in three groups
    assert split_accuracy(predicted, true, 1) == (0.75, 1.0, 0.5)


def test_absent_classes_do_not_count():
    whole = split_accuracy([0, 7], [0, 7], n_known=5)
    assert whole == (1.0, 1.0, 1.0)


def test_no_novel_sample_is_nan_not_zero():
    result = split_accuracy([0, 1, 1], [0, 1, 1], n_known=4)
    assert np.isnan(result.novel) and result.known == 1.0
    assert np.isnan(split_accuracy([0], [3], n_known=3).known)
    assert np.isnan(split_accuracy([], [], n_known=3)).all()


def test_all_is_the_weighted_mean_and_ids_are_only_ids():
    rng = np.random.default_rng(3)
    true = rng.integers(0, 20, 4000)
    predicted = np.where(rng.random(4000) < 0.6, true, rng.integers(0, 20, 4000))
    result = split_accuracy(predicted, true, 8)
    share = (true < 8).mean()
    assert result.all == pytest.approx(share * result.known + (1 - share) * result.novel)
    renamed = rng.permutation(20)[predicted]
    assert split_accuracy(renamed, true, 8) == pytest.approx(result)


def test_accumulator_equals_the_function():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 9, 500), rng.integers(0, 12, 500)
    metric = SplitAccuracyMetric(n_known=4)
    for part in np.array_split(np.arange(500), 7):
        metric.update(predicted[part], true[part])
    assert metric.compute() == split_accuracy(predicted, true, 4)
    other = SplitAccuracyMetric(n_known=4)
    other.update([30], [2])
    metric.counts.merge(other.counts)
    again = split_accuracy(np.append(predicted, 30), np.append(true, 2), 4)
    assert metric.compute() == pytest.approx(again)
    metric.reset()
    assert np.isnan(metric.compute().all)


def test_a_thousand_classes_recovered_under_a_permutation():
    rng = np.random.default_rng(1)
    true = rng.integers(0, 1000, 50_000)
    assert split_accuracy(rng.permutation(1000)[true], true, 500) == (1.0, 1.0, 1.0)


def test_parts_share_the_assignment_of_the_whole():
    # The first half is wrong under the assignment of the whole, though perfect on its own.
    true = np.array([0] * 4 + [0] * 6)
    predicted = np.array([1] * 4 + [0] * 6)
    first, second = accuracy_by_part(predicted, true, 1, parts=2)
    assert (first.all, second.all) == (0.2, 1.0)
    assert np.isnan(first.novel)


@pytest.mark.parametrize(
    ("predicted", "true", "says"),
    [
        ([0, 1], [0], "2 samples and true has 1"),
        ([-1], [0], "negative"),
        ([0.5], [0], "whole numbers"),
        ([[0]], [0], "shape"),
        ([10**9], [0], "too large"),
    ],
)
def test_bad_ids_are_refused(predicted, true, says):
    with pytest.raises(InputError, match=says):
        split_accuracy(predicted, true, 1)


def test_the_worked_example_of_the_documentation():
    counts = np.array([[8, 1, 0, 0], [2, 3, 0, 1], [0, 6, 1, 0], [0, 0, 9, 9]])
    predicted, true = (np.repeat(ids.ravel(), counts.ravel()) for ids in np.indices((4, 4)))
    assert split_accuracy(predicted, true, 2) == (0.6, 0.7, 0.5)
