"""How many novel classes are there? The estimate of the paper's Sec. 5.3.

k-means over zero-shot features, the silhouette as the objective, bounded Brent over the number of
clusters k; the novel budget is k - K. Expect too small a number where K is large: the paper itself
finds 113 of 500 on ImageNet-C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from warnings import catch_warnings, simplefilter

import numpy as np

from ttgcd.errors import InputError

# Beyond this many clusters one start of k-means is enough: they differ by little and cost much.
MANY_CLUSTERS = 200
# Beyond this many samples "auto" takes the mini-batch variant of k-means.
MANY_SAMPLES = 20_000
# Up to this many numbers k-means runs on one thread: starting threads costs more than they save,
# by a factor of ten and more on a busy machine.
FEW_NUMBERS = 2**21
# Clusters that are looked for at most where no class is known.
MOST_GROUPS = 200
# Score of a clustering whose silhouette is not defined (fewer than two distinct clusters).
UNDEFINED = -1.0


@dataclass(frozen=True)
class CountEstimate:
    """``k`` clusters in all, ``novel`` of them beyond the known classes.

    ``trace`` lists every (k, silhouette) in the order of evaluation.
    """

    novel: int
    k: int
    trace: tuple[tuple[int, float], ...]


def cluster_bounds(samples: int, n_known: int, k_max: int | None = None) -> tuple[int, int]:
    """The range of k that is searched: from K + 1 to max(3K, K + 10), at most half the samples.
    Without known classes nothing says where to look: from 2 to a tenth of the samples."""
    highest = max(3 * n_known, n_known + 10) if k_max is None else k_max
    if n_known == 0 and k_max is None:
        highest = min(MOST_GROUPS, max(10, samples // 10))
    highest = min(highest, samples // 2)
    lowest = max(n_known + 1, 2)
    if highest < lowest:
        beside = f"novel classes beside {n_known} known ones" if n_known else "groups"
        raise InputError(
            f"{samples} samples are too few to look for {beside}: give at least {2 * lowest} "
            f"samples, or state the number of {'novel classes' if n_known else 'groups'}"
        )
    return lowest, highest


def estimate_novel_count(
    features: np.ndarray,
    n_known: int,
    *,
    k_max: int | None = None,
    method: Literal["brent", "grid"] = "brent",
    kmeans: Literal["auto", "plain", "mini-batch"] = "auto",
    silhouette_samples: int = 5_000,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> CountEstimate:
    """Estimate the number of novel classes from unit zero-shot features (n, d).

    Args:
        n_known: number of known classes K.
        k_max: upper bound of the search, see ``cluster_bounds``.
        method: "brent" evaluates about twenty values of k, "grid" every one.
        kmeans: "plain" is the paper's, for any number of samples; "auto" takes the mini-batch
            variant above 20,000.
        silhouette_samples: the silhouette compares all pairs, so at most this many samples enter.
        progress: called with every new (k, silhouette).
    """
    features = np.ascontiguousarray(features, dtype=np.float32)
    if features.ndim != 2 or not np.isfinite(features).all():
        raise InputError(f"features must be finite rows (n, d), got shape {features.shape}")
    lowest, highest = cluster_bounds(len(features), n_known, k_max)
    if kmeans not in ("auto", "plain", "mini-batch"):
        raise InputError(f"kmeans must be 'auto', 'plain' or 'mini-batch', got {kmeans!r}")
    if kmeans == "auto":
        kmeans = "plain" if len(features) <= MANY_SAMPLES else "mini-batch"
    score = _silhouette_of_k(features, silhouette_samples, seed, kmeans == "plain")
    seen: dict[int, float] = {}

    def evaluate(k: float) -> float:
        whole = min(max(int(k), lowest), highest)
        if whole not in seen:
            seen[whole] = score(whole)
            if progress is not None:
                progress(whole, seen[whole])
        return -seen[whole]

    if method == "grid":
        for k in range(lowest, highest + 1):
            evaluate(k)
    elif method == "brent":
        if highest > lowest:
            from scipy.optimize import minimize_scalar  # slow to import

            found = minimize_scalar(
                evaluate, bounds=(lowest, highest), method="bounded", options={"xatol": 0.5}
            )
            # The objective is a step function of k: look one step beyond where Brent stopped,
            # and beside the best value met on the way.
            for centre in (int(found.x), max(seen, key=lambda k: (seen[k], -k))):
                evaluate(centre - 1)
                evaluate(centre + 1)
        else:
            evaluate(lowest)
    else:
        raise InputError(f"method must be 'brent' or 'grid', got {method!r}")
    best = max(seen, key=lambda k: (seen[k], -k))
    return CountEstimate(novel=best - n_known, k=best, trace=tuple(seen.items()))


def _silhouette_of_k(
    features: np.ndarray, silhouette_samples: int, seed: int, plain: bool
) -> Callable[[int], float]:
    """The objective: cluster into k groups, return the mean silhouette (Euclidean)."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    rows = np.arange(len(features))
    if len(rows) > silhouette_samples:
        rows = np.random.default_rng(seed).choice(len(rows), silhouette_samples, replace=False)
    distances = _distances(features[rows])

    def score(k: int) -> float:
        n_init = 10 if k <= MANY_CLUSTERS else 1
        kind = KMeans if plain else MiniBatchKMeans
        with threadpool_limits(1 if features.size <= FEW_NUMBERS else None), catch_warnings():
            simplefilter("ignore", ConvergenceWarning)  # equal samples: seen in the labels below
            labels = kind(k, n_init=n_init, random_state=seed).fit_predict(features)[rows]
        if not 2 <= len(np.unique(labels)) < len(labels):
            return UNDEFINED
        return float(silhouette_score(distances, labels, metric="precomputed"))

    return score


def _distances(features: np.ndarray) -> np.ndarray:
    """All Euclidean distances, computed once for every k."""
    squares = (features * features).sum(axis=1)
    squared = squares[:, None] + squares[None, :] - 2.0 * (features @ features.T)
    np.fill_diagonal(squared, 0.0)
    return np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared)
