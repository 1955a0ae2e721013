"""Whether there are groups at all: are neighbours nearer than in a cloud without any?"""

from __future__ import annotations

import numpy as np

#: With fewer samples neighbours tell nothing: there is more room than there are samples.
LEAST_SAMPLES = 200
MOST_SAMPLES = 2_000
#: Neighbours that are looked at.
NEIGHBOURS = 3


def structure(rows: np.ndarray, groups: int = 1, seed: int = 0) -> float | None:
    """By which part of the way to touching the nearest neighbours are nearer than in a normal cloud
    of the same mean and covariance, which has no groups.

    (median over samples of the mean cosine to the nearest neighbours, less that of the cloud) over
    (1 less that of the cloud). About 0 without groups, 1 for groups of equal samples; None where
    there are too few samples, or so many ``groups`` were found that the samples which are looked at
    are not two of each.

    >>> rng = np.random.default_rng(0)
    >>> cloud = rng.normal(size=(400, 16))
    >>> groups = np.repeat(rng.normal(size=(20, 16)), 20, axis=0) + 0.2 * cloud
    >>> structure(cloud) < 0.05, structure(groups) > 0.5, structure(cloud[:50])
    (True, True, None)
    """
    if len(rows) < LEAST_SAMPLES or 2 * groups > MOST_SAMPLES:
        return None
    rng = np.random.default_rng(seed)
    if len(rows) > MOST_SAMPLES:
        rows = rows[np.sort(rng.choice(len(rows), MOST_SAMPLES, replace=False))]
    centred = rows.astype(np.float64)
    centred -= centred.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(rows))
    scales = np.sqrt(np.maximum(variances, 0.0))
    cloud = (rng.normal(size=centred.shape) * scales) @ directions.T
    found, expected = _nearness(centred), _nearness(cloud)
    return float((found - expected) / max(1.0 - expected, 1e-9))


def _nearness(rows: np.ndarray) -> float:
    """The median over rows of the mean cosine to the nearest others."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    cosines = (unit @ unit.T).astype(np.float32)
    np.fill_diagonal(cosines, -2.0)
    nearest = np.partition(cosines, -NEIGHBOURS, axis=1)[:, -NEIGHBOURS:]
    return float(np.median(nearest.mean(axis=1)))
