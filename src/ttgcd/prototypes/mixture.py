"""Known or not: two Gaussians over the maximum cosine to the known anchors."""

from __future__ import annotations

import warnings

import numpy as np


def known_posterior(scores: np.ndarray, seed: int) -> np.ndarray:
    """Posterior of the component with the higher mean, for each of the scores (n,).

    Scores are scaled to [0, 1] over the batch first. Ones everywhere, that is "all known", when
    there is nothing to split: fewer than two samples, equal scores, or an empty component.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    scores = np.asarray(scores, np.float64)
    everything = np.ones(len(scores))
    if len(scores) < 2 or np.ptp(scores) < 1e-9:
        return everything
    column = ((scores - scores.min()) / np.ptp(scores))[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = GaussianMixture(2, random_state=seed).fit(column)
    posteriors = mixture.predict_proba(column)
    likelier = posteriors.argmax(axis=1)
    if len(np.unique(likelier)) < 2:
        return everything
    return posteriors[:, int(mixture.means_[:, 0].argmax())]


def known_mask(scores: np.ndarray, seed: int) -> np.ndarray:
    """Which samples the mixture gives to the component of the higher similarity."""
    return known_posterior(scores, seed) >= 0.5


def mixture_threshold(scores: np.ndarray, seed: int) -> float:
    """The lowest score that still counts as known; the minimum when nothing can be split."""
    known = known_mask(scores, seed)
    # A wide component may claim the far tail of the other: the threshold cuts once, so it lies
    # above the best of the samples that are novel and lower than the mean of the known ones.
    novel = scores[~known & (scores < scores[known].mean())]
    above = scores[known & (scores > novel.max())] if len(novel) else scores
    return float(above.min())
