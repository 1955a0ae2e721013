"""The estimate of the number of novel classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from ttgcd.errors import InputError
from ttgcd.prototypes.count import cluster_bounds, estimate_novel_count


def blobs(classes, each, spread, seed=0, dim=32):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, dim))
    points = np.repeat(centres, each, axis=0) + spread * rng.normal(size=(classes * each, dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points[rng.permutation(len(points))].astype(np.float32)


def test_finds_the_classes_of_a_clear_world():
    result = estimate_novel_count(blobs(9, 30, 0.2), n_known=4)
    assert (result.novel, result.k) == (5, 9)


def test_scores_are_silhouettes_of_kmeans():
    points = blobs(6, 20, 0.5)
    result = estimate_novel_count(points, n_known=3)
    for k, score in result.trace[:4]:
        labels = KMeans(k, n_init=10, random_state=0).fit_predict(points)
        assert score == pytest.approx(silhouette_score(points, labels), abs=1e-3)


def test_brent_keeps_the_best_it_saw_and_looks_at_its_neighbours():
    result = estimate_novel_count(blobs(12, 15, 0.6), n_known=5)
    trace = dict(result.trace)
    assert len(trace) == len(result.trace)  # no k is evaluated twice
    assert trace[result.k] == max(trace.values())
    assert {result.k - 1, result.k + 1} - {5, 16} <= set(trace)


def test_grid_evaluates_every_k_and_is_never_worse():
    points = blobs(7, 14, 0.7)
    brent = estimate_novel_count(points, 3, k_max=12)
    grid = estimate_novel_count(points, 3, k_max=12, method="grid")
    assert [k for k, _ in grid.trace] == list(range(4, 13))
    assert dict(grid.trace)[grid.k] >= dict(brent.trace)[brent.k]


def test_the_same_seed_gives_the_same_trace_also_from_a_sample():
    points = blobs(8, 40, 0.4)
    one = estimate_novel_count(points, 4, silhouette_samples=100, seed=3)
    assert one == estimate_novel_count(points, 4, silhouette_samples=100, seed=3)
    assert one.trace != estimate_novel_count(points, 4, seed=3).trace


def test_bounds():
    assert cluster_bounds(10_000, 50) == (51, 150)
    assert cluster_bounds(10_000, 3) == (4, 13)
    assert cluster_bounds(1024, 172) == (173, 512)  # half the samples
    assert cluster_bounds(1024, 5, k_max=8) == (6, 8)
    assert cluster_bounds(100, 0) == (2, 10)
    with pytest.raises(InputError, match="at least 202 samples"):
        cluster_bounds(150, 100)


def test_progress_reports_every_evaluation():
    seen = []
    result = estimate_novel_count(
        blobs(5, 10, 0.3), 2, progress=lambda k, score: seen.append((k, score))
    )
    assert tuple(seen) == result.trace


def test_identical_samples_do_not_crash():
    result = estimate_novel_count(np.ones((40, 8)), n_known=2, k_max=5)
    assert result.novel >= 1


@pytest.mark.parametrize(
    ("features", "options", "says"),
    [
        (np.full((40, 4), np.nan), {}, "finite"),
        (np.ones(40), {}, "shape"),
        (np.ones((40, 4)), {"method": "newton"}, "'brent' or 'grid'"),
    ],
)
def test_bad_input(features, options, says):
    with pytest.raises(InputError, match=says):
        estimate_novel_count(features, 2, **options)


def test_above_the_limit_the_plain_kmeans_is_an_option(monkeypatch):
    points = blobs(6, 40, 1.0)
    plain = estimate_novel_count(points, 3)
    monkeypatch.setattr("ttgcd.prototypes.count.MANY_SAMPLES", 100)
    assert estimate_novel_count(points, 3, kmeans="plain") == plain
    quick = estimate_novel_count(points, 3)
    assert quick.trace != plain.trace
    assert quick == estimate_novel_count(points, 3, kmeans="mini-batch")
    with pytest.raises(InputError, match="kmeans"):
        estimate_novel_count(points, 3, kmeans="fast")
