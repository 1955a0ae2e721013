"""Where novel categories begin: spherical k-means++ with the known prototypes as centres."""

from __future__ import annotations

import warnings

import numpy as np

from ttgcd.prototypes.bank import normalise

#: The largest squared distance of two points on the unit sphere.
FARTHEST = 4.0


def squared_distances(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """D^2(n) = 2 (1 - max_c v_n . c) to the nearest centre (Eq. 7), clipped at 0.

    Without centres every feature is equally uncovered, and as far away as can be.
    """
    if len(centres) == 0:
        return np.full(len(features), FARTHEST)
    nearest = (features @ centres.T).max(axis=1).astype(np.float64)
    return np.maximum(0.0, 2.0 * (1.0 - nearest))


def seed_novel(
    features: np.ndarray,
    centres: np.ndarray,
    count: int,
    rng: np.random.Generator,
    candidates: int = 1,
) -> np.ndarray:
    """Draw ``count`` novel prototypes from ``features`` (Eq. 6-7), returned as row positions.

    Each seed is drawn with probability proportional to D^2 against the centres C_l so far: the
    active known prototypes and the seeds already chosen. ``candidates`` > 1 draws that many and
    keeps the one that leaves the least total D^2 (greedy k-means++). Points already covered are
    never drawn, so fewer than ``count`` seeds may come back, with a warning.
    """
    nearest = squared_distances(features, centres)
    chosen: list[int] = []
    for _ in range(count):
        total = nearest.sum()
        if total <= 1e-12:
            break
        draws = rng.choice(len(features), size=candidates, p=nearest / total)
        reduced = [
            np.minimum(nearest, squared_distances(features, features[draw][None])) for draw in draws
        ]
        best = int(np.argmin([r.sum() for r in reduced]))
        chosen.append(int(draws[best]))
        nearest = reduced[best]
        nearest[chosen] = 0.0
    if len(chosen) < count:
        warnings.warn(
            f"only {len(chosen)} of {count} novel prototypes could be seeded: the buffer has no "
            "more distinct features",
            stacklevel=2,
        )
    return np.asarray(chosen, dtype=np.int64)


def refine_novel(
    features: np.ndarray, known: np.ndarray, novel: np.ndarray, iterations: int
) -> np.ndarray:
    """Spherical Lloyd steps on the buffer, known prototypes held fixed (not in the paper)."""
    novel = novel.copy()
    for _ in range(iterations):
        centres = np.concatenate([known, novel])
        nearest = (features @ centres.T).argmax(axis=1) - len(known)
        for label in np.unique(nearest[nearest >= 0]):
            novel[label] = normalise(features[nearest == label].sum(axis=0))
    return novel


def best_novel(
    features: np.ndarray,
    known: np.ndarray,
    count: int,
    rng: np.random.Generator,
    candidates: int = 1,
    iterations: int = 0,
    restarts: int = 1,
) -> np.ndarray:
    """Novel prototypes: seeded, refined, and of ``restarts`` tries the one of least total D^2.

    The defaults are the paper's single draw of Eq. 6-7.
    """
    best, least = np.zeros((0, features.shape[1]), np.float32), np.inf
    for _ in range(restarts):
        seeds = seed_novel(features, known, count, rng, candidates)
        novel = refine_novel(features, known, features[seeds], iterations)
        total = squared_distances(features, np.concatenate([known, novel])).sum()
        if total < least:
            best, least = novel, total
    return best
