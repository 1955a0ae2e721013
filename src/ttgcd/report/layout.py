"""Features to two dimensions, for the map."""

from __future__ import annotations

import numpy as np

#: Fewer points than this get plain PCA.
_LEAST = 30
#: Neighbours that attract a point, strangers that repel it in a step, steps.
_NEIGHBOURS, _STRANGERS, _STEPS = 12, 10, 90
#: How far a point moves in the first step, in widths of the map; later steps are shorter.
_PACE = 0.02
#: Points whose neighbours are looked for together.
_AT_ONCE = 256


def layout(features: np.ndarray, seed: int = 0) -> tuple[np.ndarray, str]:
    """Points in [0, 1]^2 and the name of the projection.

    Neighbours in feature space attract each other and strangers repel, beginning at the first two
    principal axes (their ranks): UMAP's loss with plain gradient steps, in a fraction of a second.
    Few points get plain PCA.
    """
    n = len(features)
    if n == 0:
        return np.zeros((0, 2)), "none"
    points = _principal(features, min(50, n, features.shape[1]))
    name = "PCA"
    spread = float(np.ptp(points, axis=0).max(initial=0.0))
    if n >= _LEAST and points.shape[1] >= 2 and spread > 1e-6:
        points, name = _neighbour_map(points, np.random.default_rng(seed)), "neighbour map"
    flat = np.zeros((n, 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    low, high = flat.min(axis=0), flat.max(axis=0)
    return (flat - low) / np.maximum(high - low, 1e-12), name


def _neighbour_map(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(points)
    near = _nearest(points.astype(np.float32), min(_NEIGHBOURS, n - 1))
    one, other = np.repeat(np.arange(n), near.shape[1]), near.ravel()
    # By rank: one odd picture far out must not press all others into a corner.
    at = points[:, :2].argsort(axis=0, kind="stable").argsort(axis=0, kind="stable") * (20.0 / n)
    every = np.repeat(np.arange(n), _STRANGERS)
    for step in range(_STEPS):
        away = at[one] - at[other]
        pull = away / (1 + (away**2).sum(axis=1))[:, None]
        strangers = rng.integers(0, n, len(every))
        gap = at[every] - at[strangers]
        square = (gap**2).sum(axis=1)
        push = gap / ((0.05 + square) * (1 + square))[:, None]
        move = np.stack(
            [
                np.bincount(other, pull[:, axis], n)
                - np.bincount(one, pull[:, axis], n)
                + np.bincount(every, push[:, axis], n)
                for axis in range(2)
            ],
            axis=1,
        )
        reach = _PACE * 20 * (1 - step / _STEPS)
        length = np.linalg.norm(move, axis=1, keepdims=True)
        at += move * np.minimum(reach / np.maximum(length, 1e-12), 0.25 * (1 - step / _STEPS))
    # Half by rank again: groups that have drifted far apart come nearer and grow.
    ranks = at.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable") / n
    return (at - at.min(axis=0)) / np.maximum(np.ptp(at, axis=0), 1e-12) + ranks


def _nearest(points: np.ndarray, count: int) -> np.ndarray:
    """The nearest other points of each, (n, count)."""
    half_squares = (points**2).sum(axis=1) / 2
    near = np.empty((len(points), count), np.int64)
    for begin in range(0, len(points), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(points))
        closeness = points[begin:end] @ points.T - half_squares  # minus half the distance
        closeness[np.arange(end - begin), np.arange(begin, end)] = -np.inf
        near[begin:end] = np.argpartition(-closeness, count - 1, axis=1)[:, :count]
    return near


def _principal(features: np.ndarray, components: int) -> np.ndarray:
    """Coordinates on the first principal axes; the sign of every axis is fixed."""
    centred = (features - features.mean(axis=0)).astype(np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :components]
    largest = np.abs(axes).argmax(axis=0)
    return centred @ (axes * np.sign(axes[largest, np.arange(axes.shape[1])]))
