"""Features to two dimensions, for the map."""

from __future__ import annotations

import numpy as np

_TSNE_LEAST, _TSNE_MOST = 30, 2000


def layout(features: np.ndarray, seed: int = 0) -> tuple[np.ndarray, str]:
    """Points in [0, 1]^2 and the name of the projection.

    t-SNE after PCA shows neighbourhoods; few or very many points get plain PCA.
    """
    n = len(features)
    if n == 0:
        return np.zeros((0, 2)), "none"
    points = _principal(features, min(50, n, features.shape[1]))
    name = "PCA"
    spread = float(np.ptp(points, axis=0).max(initial=0.0))
    if _TSNE_LEAST <= n <= _TSNE_MOST and spread > 1e-6:
        from sklearn.manifold import TSNE

        # Groups are in place soon after the early exaggeration (250 steps); more only polishes.
        tsne = TSNE(perplexity=min(30.0, n / 4), init="pca", max_iter=400, random_state=seed)
        points, name = tsne.fit_transform(points.astype(np.float32)), "t-SNE"
    flat = np.zeros((n, 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    low, high = flat.min(axis=0), flat.max(axis=0)
    return (flat - low) / np.maximum(high - low, 1e-12), name


def _principal(features: np.ndarray, components: int) -> np.ndarray:
    """Coordinates on the first principal axes; the sign of every axis is fixed."""
    centred = (features - features.mean(axis=0)).astype(np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :components]
    largest = np.abs(axes).argmax(axis=0)
    return centred @ (axes * np.sign(axes[largest, np.arange(axes.shape[1])]))
