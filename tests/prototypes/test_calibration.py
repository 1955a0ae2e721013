from __future__ import annotations

import numpy as np
import pytest

from ttgcd.prototypes.calibration import Geometry, Standard, shrinkage, unit


def _rows(n: int = 60, d: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return unit(rng.normal(size=(n, d)) * np.arange(1, d + 1) + 2)


def test_geometry_agrees_with_the_definition():
    rows = _rows()
    geometry = Geometry.of(rows)
    mean = rows.mean(axis=0)
    covariance = np.cov(rows.T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    r = max(0.1, shrinkage(values, len(rows)))
    mixed = (1 - r) * covariance + r * np.trace(covariance) / 5 * np.eye(5)
    # C^(-1/4) in the same basis: the rotation between the two does not change any cosine.
    root = vectors @ np.diag(np.diag(vectors.T @ mixed @ vectors) ** -0.25) @ vectors.T
    expected = unit((rows - mean) @ root)
    found = geometry(rows)
    assert np.allclose(found @ found.T, expected @ expected.T, atol=1e-4)


def test_oracle_shrinkage_agrees_with_scikit_learn():
    from sklearn.covariance import OAS

    rows = _rows(30, 6)
    values = np.linalg.eigvalsh(np.cov(rows.T, bias=True))
    assert shrinkage(values, 30) == pytest.approx(OAS().fit(rows).shrinkage_, rel=0.1)


def test_equal_rows_give_no_nan():
    rows = unit(np.ones((10, 4), np.float32))
    assert np.isfinite(Geometry.of(rows)(rows)).all()
    assert np.isfinite(Standard.of(rows, rows[:2])(rows)).all()


def test_standardised_logits_have_mean_zero_and_deviation_one_on_what_they_were_calibrated_on():
    rows, texts = _rows(300), _rows(4, seed=1)
    logits = Standard.of(rows, texts, chunk=7)(rows)
    assert np.allclose(logits.mean(axis=0), 0, atol=1e-4)
    assert np.allclose(logits.std(axis=0), 1, atol=1e-3)
