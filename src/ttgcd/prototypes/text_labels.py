"""What the text anchors say about an image: Eq. 1 and Eq. 2."""

from __future__ import annotations

import numpy as np


def zero_shot_probabilities(
    features: np.ndarray, anchors: np.ndarray, logit_scale: float
) -> np.ndarray:
    """p_n(k): softmax over the known classes of v_n . z_k / tau, tau = 1 / logit_scale (Eq. 1)."""
    logits = (features @ anchors.T).astype(np.float64) * logit_scale
    if not len(anchors):
        return logits
    logits -= logits.max(axis=1, keepdims=True)
    weights = np.exp(logits, out=logits)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def pseudo_labels(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pseudo-label and its margin omega = p(1) - p(2) (Eq. 2).

    With a single class there is no runner-up: p(2) = 0 and omega = 1. Without any class nothing is
    said: label 0 for all, and omega = 0.
    """
    if probabilities.shape[1] == 0:
        return np.zeros(len(probabilities), np.int64), np.zeros(len(probabilities))
    labels = probabilities.argmax(axis=1)
    if probabilities.shape[1] == 1:
        return labels, np.ones(len(labels))
    every = np.arange(len(labels))
    others = probabilities.copy()
    others[every, labels] = -1.0  # two maxima are faster found than a partition
    return labels, probabilities[every, labels] - others.max(axis=1)
