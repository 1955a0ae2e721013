"""Which numbers of clusters stand out on a quality curve."""

from __future__ import annotations

import numpy as np
import pytest

from ttgcd.prototypes.curve import Curve, landmarks

K = np.unique(np.round(2 * 1.1 ** np.arange(45))).astype(int)


def bumps(*hills: tuple[float, float], width: float = 0.3, noise: float = 0.0) -> Curve:
    """Hills at (clusters, height), as wide on a logarithmic scale."""
    x = np.log(K)
    quality = sum(h * np.exp(-(((x - np.log(k)) / width) ** 2)) for k, h in hills)
    return Curve(K, quality + noise * np.random.default_rng(0).normal(size=len(K)))


def near(found: list[int], wanted: list[int]) -> bool:
    return len(found) == len(wanted) and all(
        max(f / w, w / f) < 1.15 for f, w in zip(found, wanted, strict=True)
    )


def test_two_honest_hills_are_both_found() -> None:
    assert near(landmarks(bumps((6, 0.9), (40, 1.0))), [6, 40])
    assert near(landmarks(bumps((6, 1.0), (25, 0.9), (110, 0.95))), [6, 25, 110])


def test_a_low_hill_is_none() -> None:
    assert near(landmarks(bumps((6, 0.5), (40, 1.0))), [40])


def test_small_waves_on_one_hill_make_no_second_one() -> None:
    assert near(landmarks(bumps((30, 1.0), width=0.8, noise=0.02)), [30])


def test_hills_side_by_side_are_one() -> None:
    assert len(landmarks(bumps((30, 1.0), (39, 0.97), width=0.08))) == 1


@pytest.mark.parametrize("quality", [np.linspace(0, 1, len(K)), np.linspace(1, 0, len(K))])
def test_an_end_of_the_curve_is_no_hill(quality: np.ndarray) -> None:
    assert landmarks(Curve(K, quality)) == []


def test_a_flat_or_short_curve_has_none() -> None:
    assert landmarks(Curve(K, np.full(len(K), 0.3))) == []
    assert landmarks(Curve(K[:2], np.array([0.0, 1.0]))) == []


def test_a_curve_survives_json() -> None:
    curve = bumps((6, 1.0))
    again = Curve.from_json(curve.as_json())
    assert again.clusters.tolist() == curve.clusters.tolist()
    assert again.quality.tolist() == curve.quality.tolist()
