"""The space in which images are compared: centred and half whitened on what was seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Directions of least variance behind these many are noise for clustering.
DIRECTIONS = 256
#: The least share of the mean eigenvalue that is mixed into every eigenvalue.
LEAST_SHRINKAGE = 0.1


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length one, float32; zero rows stay zero."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.maximum(length, 1e-12)).astype(np.float32)


def shrinkage(eigenvalues: np.ndarray, samples: int) -> float:
    """Oracle approximating shrinkage of a covariance (Chen et al. 2010) from its eigenvalues."""
    d = len(eigenvalues)
    trace, square = eigenvalues.sum(), (eigenvalues**2).sum()
    above = (1 - 2 / d) * square + trace**2
    below = (samples + 1 - 2 / d) * (square - trace**2 / d)
    return 1.0 if below <= 0 else float(min(1.0, above / below))


@dataclass(frozen=True)
class Geometry:
    """f(v) = unit((v - mean) P), P = U w^(-1/4) over the leading directions.

    Full whitening blows noise up to the size of what tells classes apart; the square root of it
    evens out the few directions (background, style) that would else decide everything.
    """

    mean: np.ndarray
    projection: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Geometry:
        """Calibrated on the rows of the reservoir."""
        mean = rows.mean(axis=0, dtype=np.float64)
        centred = rows - mean.astype(np.float32)
        covariance = (centred.T @ centred).astype(np.float64) / max(1, len(rows))
        values, directions = np.linalg.eigh(covariance)
        values = np.maximum(values, 0)
        r = max(LEAST_SHRINKAGE, shrinkage(values, len(rows)))
        values = (1 - r) * values + r * max(values.mean(), 1e-12)
        projection = (directions * values**-0.25)[:, -DIRECTIONS:]
        return cls(mean.astype(np.float32), projection.astype(np.float32))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return unit((rows - self.mean) @ self.projection)


@dataclass(frozen=True)
class Standard:
    """Mean and deviation of the cosines to some texts: their logits, made comparable.

    Without it the texts that lie near the cone of all images win everywhere.
    """

    texts: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, texts: np.ndarray, chunk: int = 1024) -> Standard:
        """Calibrated on the rows of the reservoir, in pieces: vocabularies are long."""
        total, square = np.zeros(len(texts)), np.zeros(len(texts))
        for start in range(0, len(rows), chunk):
            cosines = rows[start : start + chunk] @ texts.T
            total += cosines.sum(axis=0, dtype=np.float64)
            square += np.einsum("nk,nk->k", cosines, cosines, dtype=np.float64)
        mean = total / max(1, len(rows))
        deviation = np.sqrt(np.maximum(0, square / max(1, len(rows)) - mean**2)) + 1e-6
        return cls(texts, mean.astype(np.float32), deviation.astype(np.float32))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Z = (v . text - mean) / deviation."""
        return (rows @ self.texts.T - self.mean) / self.deviation
