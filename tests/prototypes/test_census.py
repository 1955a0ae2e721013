from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.prototypes.worlds import world
from ttgcd.prototypes.census import _Cuts, _most_distinct, _numbers, _reached, take_census
from ttgcd.prototypes.text_evidence import Texts


@pytest.mark.parametrize(("known", "novel"), [(5, 5), (8, 0), (10, 20), (30, 10)])
def test_the_count_is_near_the_truth_and_the_range_holds_it(known, novel):
    rows, _, texts = world(known, novel)
    census = take_census(rows, texts, np.random.default_rng(0))
    assert abs(census.total - (known + novel)) <= 0.2 * (known + novel)
    assert census.low <= known + novel <= census.high
    assert census.low <= census.total <= census.high


def test_without_words_the_names_alone_vote():
    rows, _, texts = world(20, 10)
    alone = Texts.of(texts.anchors, None, texts.scale)
    census = take_census(rows, alone, np.random.default_rng(0))
    assert 20 <= census.total <= 45


def test_no_sample_to_speak_of_gives_no_novel_category():
    _, _, texts = world(3, 1)
    census = take_census(np.zeros((1, 48), np.float32), texts, np.random.default_rng(0))
    assert (census.total, census.low, census.high) == (3, 3, 3)


def test_equal_rows_are_counted_without_trouble():
    rows, _, texts = world(3, 1)
    census = take_census(np.repeat(rows[:1], 50, axis=0), texts, np.random.default_rng(0))
    assert np.isfinite([census.total, census.low, census.high]).all()


def test_numbers_of_clusters_grow_by_a_constant_ratio_up_to_half_of_the_samples():
    numbers = _numbers(100, 5)
    assert numbers[:5] == [2, 3, 4, 5, 6]
    assert numbers[-1] <= 50
    assert all(b - a <= 0.12 * a + 0.5 for a, b in pairwise(numbers[4:]))


def test_the_names_vote_lies_between_the_cuts_that_enclose_the_wanted_part():
    cuts = _Cuts(np.array([2.0, 4, 8, 16]), np.ones(4), np.ones(4), np.array([0.4, 0.8, 0.9, 1.0]))
    assert _reached(cuts) == pytest.approx(6.0)


def test_the_words_vote_is_the_best_cut_when_no_other_comes_near():
    cuts = _Cuts(
        np.array([2.0, 4, 8]), np.array([1.0, 1.0, 0.5]), np.array([0.3, 0.9, 0.9]), np.ones(3)
    )
    assert _most_distinct(cuts) == pytest.approx(4.0, abs=0.01)
