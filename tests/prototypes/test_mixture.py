"""The split into known and novel, and k-means with its degenerate cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ttgcd.prototypes.clusters import (
    kmeans,
    name_clusters,
    nearest,
    semi_supervised_kmeans,
)
from ttgcd.prototypes.mixture import known_mask, known_posterior, mixture_threshold


def two_groups(seed: int = 0, low: float = 0.2, high: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.random(200) < 0.6
    return np.where(truth, high, low) + 0.01 * rng.normal(size=200), truth


def test_the_higher_component_is_known() -> None:
    scores, truth = two_groups()
    assert np.array_equal(known_mask(scores, 0), truth)


def test_shift_and_scale_of_the_scores_do_not_matter() -> None:
    scores, _ = two_groups()
    np.testing.assert_allclose(
        known_posterior(scores, 0), known_posterior(5 * scores - 2, 0), atol=1e-6
    )


def slow_mixture(scores: np.ndarray) -> np.ndarray:
    """Expectation-maximisation run to its end (the library stops a little earlier)."""
    x = (scores - scores.min()) / (scores.max() - scores.min())
    weight = np.array([0.5, 0.5])
    mean, var = np.array([x[x < 0.5].mean(), x[x >= 0.5].mean()]), np.array([0.05, 0.05])
    for _ in range(500):
        density = weight * np.exp(-((x[:, None] - mean) ** 2) / (2 * var)) / np.sqrt(var)
        share = density / density.sum(axis=1, keepdims=True)
        weight = share.mean(axis=0)
        mean = (share * x[:, None]).sum(axis=0) / share.sum(axis=0)
        var = (share * (x[:, None] - mean) ** 2).sum(axis=0) / share.sum(axis=0)
    return share[:, mean.argmax()]


def test_posterior_is_that_of_expectation_maximisation() -> None:
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.normal(0.2, 0.02, 150), rng.normal(0.3, 0.03, 120)])
    np.testing.assert_allclose(known_posterior(scores, 0), slow_mixture(scores), atol=0.06)


@pytest.mark.parametrize("scores", [[], [0.3], [0.3] * 20, [0.3, 0.3 + 1e-12]])
def test_nothing_to_split_means_all_known(scores: list[float]) -> None:
    assert known_mask(np.array(scores), 0).all()


def test_two_samples_are_split() -> None:
    assert known_mask(np.array([0.1, 0.4]), 0).tolist() == [False, True]


def test_the_threshold_separates_what_the_mask_separates() -> None:
    scores, truth = two_groups()
    cut = mixture_threshold(scores, 0)
    assert np.array_equal(scores >= cut, truth)
    assert mixture_threshold(np.full(9, 0.25), 0) == 0.25


def points(n: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, 3))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def inertia(rows: np.ndarray, labels) -> float:
    labels = np.asarray(labels)
    return sum(
        float(((rows[labels == c] - rows[labels == c].mean(axis=0)) ** 2).sum())
        for c in np.unique(labels)
    )


def test_kmeans_reaches_the_best_partition_of_a_small_set() -> None:
    rows = points(9)
    best = min(inertia(rows, labels) for labels in itertools.product(range(2), repeat=9))
    assert inertia(rows, kmeans(rows, 2, 0).labels) == pytest.approx(best, rel=1e-5)


def test_kmeans_is_seeded() -> None:
    rows = points(200)
    one, two = kmeans(rows, 7, 3), kmeans(rows, 7, 3)
    assert np.array_equal(one.labels, two.labels)
    assert np.array_equal(one.centres, two.centres)


@pytest.mark.parametrize(
    "rows,k,expected",
    [
        (points(4), 10, 4),  # fewer points than clusters
        (np.repeat(points(1), 8, axis=0), 3, 1),  # one distinct point
        (np.repeat(points(2), 20, axis=0), 5, 2),
        (points(0), 3, 0),
        (points(5), 0, 0),
        (points(1), 1, 1),
    ],
)
def test_kmeans_never_has_more_clusters_than_distinct_points(rows, k, expected) -> None:
    found = kmeans(rows, k, 0)
    assert len(found.centres) == expected
    assert len(found.labels) == len(rows)
    assert np.isfinite(found.centres).all()
    if expected:
        assert set(found.labels) == set(range(expected))


def test_nearest_is_euclidean() -> None:
    rows, centres = points(20), 0.5 * points(4, seed=1)
    slow = [min(range(4), key=lambda c: float(((r - centres[c]) ** 2).sum())) for r in rows]
    assert nearest(rows, centres).tolist() == slow


def test_clusters_take_the_names_that_fit_best_together() -> None:
    anchors, centres = points(3, seed=2), points(5, seed=3)
    ids = name_clusters(centres, anchors, 3)
    assert sorted(ids) == [0, 1, 2, 3, 4]
    got = sum(float(anchors[ids[c]] @ centres[c]) for c in range(5) if ids[c] < 3)
    best = max(
        sum(float(anchors[k] @ centres[c]) for k, c in enumerate(chosen))
        for chosen in itertools.permutations(range(5), 3)
    )
    assert got == pytest.approx(best, rel=1e-6)
    assert sorted(name_clusters(centres[:2], anchors, 3)) == sorted(
        set(name_clusters(centres[:2], anchors, 3))
    )


def test_semi_supervised_labels_stay_and_name_their_cluster() -> None:
    rng = np.random.default_rng(0)
    means = np.eye(4)
    truth = np.repeat(np.arange(4), 25)
    rows = means[truth] + 0.1 * rng.normal(size=(100, 4))
    labels = np.where((truth < 2) & (rng.random(100) < 0.4), truth, -1)
    labels[0] = 1  # a wrong label is kept all the same
    found = semi_supervised_kmeans(rows, labels, n_known=2, k=4, seed=0)
    assert np.array_equal(found.labels[labels >= 0], labels[labels >= 0])
    free = labels < 0
    assert np.array_equal(found.labels[free & (truth < 2)], truth[free & (truth < 2)])
    assert len(np.unique(found.labels[truth == 2])) == 1
    assert found.labels[truth == 2][0] != found.labels[truth == 3][0]


def test_semi_supervised_without_labels_or_without_enough_points() -> None:
    nobody = np.full(30, -1)
    found = semi_supervised_kmeans(points(30), nobody, n_known=2, k=4, seed=0)
    assert set(found.labels) == {0, 1, 2, 3}
    few = semi_supervised_kmeans(points(2), np.array([-1, -1]), n_known=2, k=6, seed=0)
    assert len(set(few.labels)) == 2
    same = np.repeat(points(1), 5, axis=0)
    assert set(semi_supervised_kmeans(same, np.full(5, -1), 2, 4, 0).labels) <= {0, 1, 2, 3}


def test_semi_supervised_is_seeded() -> None:
    rows, labels = points(60), np.where(np.arange(60) < 10, 0, -1)
    one = semi_supervised_kmeans(rows, labels, 1, 5, seed=4)
    two = semi_supervised_kmeans(rows, labels, 1, 5, seed=4)
    assert np.array_equal(one.labels, two.labels)
