from __future__ import annotations

import numpy as np

from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.partition import (
    centres_of,
    from_seeds,
    group_sums,
    lloyd,
    smooth,
    spread_seeds,
)
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.text_evidence import Bonus


def _blobs(classes: int = 4, each: int = 30, d: int = 16, noise: float = 0.3, seed: int = 0):
    rng = np.random.default_rng(seed)
    means = unit(rng.normal(size=(classes, d)))
    true = np.repeat(np.arange(classes), each)
    return unit(means[true] + noise * unit(rng.normal(size=(len(true), d)))), true


def test_group_sums_are_the_sums_of_the_groups():
    rows, true = _blobs()
    expected = np.stack([rows[true == c].sum(axis=0) for c in range(4)])
    assert np.allclose(group_sums(rows, true, 5)[:4], expected, atol=1e-5)
    assert not group_sums(rows, true, 5)[4].any()


def test_lloyd_without_bonus_agrees_with_a_slow_spherical_k_means():
    rows, _ = _blobs(noise=1.2)
    start = rows[:6]
    found = lloyd(rows, start, RowBonus.nothing(rows, 6), 0, 0.0, steps=200)
    centres = start.astype(np.float64)
    for _ in range(200):
        labels = np.array([max(range(6), key=lambda c: row @ centres[c]) for row in rows])
        sums = np.stack([rows[labels == c].sum(axis=0) for c in range(6)])
        centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    assert np.array_equal(found.labels, labels)
    assert np.allclose(found.centres, centres, atol=1e-4)


def test_a_bonus_wins_samples_and_those_it_speaks_against_hardly_move_the_centre():
    rows, true = _blobs(2, noise=0.1)
    bonus = np.zeros((len(rows), 2), np.float32)
    bonus[true == 1, 0] = 5.0
    told = RowBonus(rows, Bonus.nothing(2, rows.shape[1]), bonus)
    taken = lloyd(rows, centres_of(rows, true, 2), told, 1, 0.1)
    assert (taken.labels == 0).all()
    bonus[true == 1] = [-0.5, -5.0]  # held by 0, against the word of the text
    held = lloyd(rows, centres_of(rows, true, 2), told, 1, 0.1)
    assert (held.labels == 0).all()
    assert held.centres[0] @ centres_of(rows, true, 2)[0] > 0.99


def test_smoothing_in_pieces_is_the_mean_with_the_three_nearest():
    rows, _ = _blobs(each=600)
    found = smooth(rows)
    for place in (0, 2047, 2048, 2399):
        near = rows @ rows[place]
        near[place] = -9
        nearest = np.argsort(-near)[:3]
        assert np.allclose(found[place], unit(rows[place] + rows[nearest].mean(axis=0)), atol=1e-5)


def test_spread_seeds_find_every_class_that_is_not_explained_yet():
    rows, true = _blobs(6)
    explained = np.where(true < 2, 1.0, -1.0)
    chosen = spread_seeds(rows, explained, 4, np.random.default_rng(0))
    assert sorted(true[chosen]) == [2, 3, 4, 5]


def test_from_seeds_recovers_known_and_novel_classes():
    rows, true = _blobs(6)
    names, keep = np.where(true < 2, true, 0), true < 2
    none = RowBonus.nothing(rows, 6)
    found = from_seeds(rows, names, keep, none, 2, 0.0, 4, np.random.default_rng(0))
    assert np.array_equal(found.labels[true < 2], true[true < 2])
    assert len({(a, b) for a, b in zip(found.labels, true, strict=True)}) == 6
