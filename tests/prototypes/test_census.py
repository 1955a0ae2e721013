from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.prototypes.worlds import world
from ttgcd.prototypes import census as module
from ttgcd.prototypes.calibration import Geometry, unit
from ttgcd.prototypes.census import MEMBERS, different, leaders, numbers, take_census
from ttgcd.prototypes.text_evidence import Texts


@pytest.mark.parametrize(("known", "novel"), [(5, 5), (8, 0), (10, 20), (30, 10), (1, 11), (0, 12)])
def test_the_count_is_near_the_truth_and_the_range_holds_it(known, novel):
    rows, _, texts = world(known, novel)
    census = take_census(rows, texts, np.random.default_rng(0))
    assert abs(census.total - (known + novel)) <= 0.2 * (known + novel)
    assert census.low <= known + novel <= census.high
    assert census.low <= census.total <= census.high


def test_without_words_it_is_as_near():
    rows, _, texts = world(20, 10)
    alone = Texts.of(texts.anchors, None, texts.scale)
    assert abs(take_census(rows, alone, np.random.default_rng(0)).total - 30) <= 5


def test_names_that_mean_nothing_do_not_spoil_it():
    rows, _, texts = world(10, 10)
    wrong = unit(np.random.default_rng(1).normal(size=texts.anchors.shape))
    census = take_census(rows, Texts.of(wrong, None, 20.0), np.random.default_rng(0))
    assert abs(census.total - 20) <= 4


def test_what_is_nearly_the_same_counts_once():
    rows, _, texts = world(5, 5)
    rng = np.random.default_rng(0)
    frames = unit(np.repeat(rows, 6, axis=0) + 0.02 * rng.normal(size=(6 * len(rows), 48)))
    places = different(Geometry.of(frames)(frames), 5)
    assert len(rows) * 0.9 <= len(places) <= len(rows) * 1.1
    census = take_census(frames, texts, np.random.default_rng(0))
    assert abs(census.total - 10) <= 2


def test_leaders_are_those_of_a_look_at_all_pairs():
    rows = unit(np.random.default_rng(0).normal(size=(200, 4)))
    for same in (0.3, 0.7):
        _check(rows, same)


def _check(rows: np.ndarray, same: float) -> None:
    wanted: list[int] = []
    for place, row in enumerate(rows):
        if all(float(row @ rows[leader]) <= same for leader in wanted):
            wanted.append(place)
    assert leaders(rows, same).tolist() == wanted


def test_narrow_classes_are_not_taken_for_copies():
    rows, _, texts = world(10, 10, each=10, noise=0.3)
    assert len(leaders(Geometry.of(rows)(rows), 0.7)) < MEMBERS * 10
    assert len(different(Geometry.of(rows)(rows), 10)) >= MEMBERS * 10
    assert abs(take_census(rows, texts, np.random.default_rng(0)).total - 20) <= 3


def test_no_sample_to_speak_of_gives_no_novel_category():
    _, _, texts = world(3, 1)
    for count in (0, 1):
        none = np.zeros((count, 48), np.float32)
        census = take_census(none, texts, np.random.default_rng(0))
        assert (census.total, census.low, census.high) == (3, 3, 3)


def test_equal_rows_are_counted_without_trouble():
    rows, _, texts = world(3, 1)
    census = take_census(np.repeat(rows[:1], 50, axis=0), texts, np.random.default_rng(0))
    assert (census.total, census.low, census.high) == (3, 3, 3)


def test_the_curve_is_highest_where_the_count_is():
    rows, _, texts = world(6, 6)
    census = take_census(rows, texts, np.random.default_rng(0))
    assert census.curve is not None
    best = census.curve.clusters[census.curve.quality.argmax()]
    assert abs(np.log(best / census.total)) < 0.15
    assert (np.diff(census.curve.clusters) > 0).all()


def test_numbers_of_clusters_grow_by_a_constant_ratio_up_to_half_of_the_samples():
    tried = numbers(100)
    assert tried[:5] == [2, 3, 4, 5, 6]
    assert tried[-1] <= 50
    assert all(b - a <= 0.1 * a + 0.5 for a, b in pairwise(tried[4:]))
    assert numbers(4) == [2]


def test_the_null_has_the_mean_and_the_covariance_and_no_clusters():
    rows, _, _ = world(2, 2, each=200, noise=0.3)
    mapped = Geometry.of(rows)(rows)
    null = module._shape_of(mapped, np.random.default_rng(0))
    assert np.allclose(np.linalg.norm(null, axis=1), 1, atol=1e-5)
    values = np.linalg.eigvalsh(np.cov(mapped.T))[::-1]
    other = np.linalg.eigvalsh(np.cov(null.T))[::-1]
    assert np.allclose(other[:3] / other.sum(), values[:3] / values.sum(), atol=0.05)
