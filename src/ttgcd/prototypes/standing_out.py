"""Does a name mean anything on these images? Then some stand out to it, more than to no meaning."""

from __future__ import annotations

import numpy as np

from ttgcd.prototypes.calibration import Standard

#: Samples nearest to a text that are looked at.
BEST = 6
#: Directions without meaning that the names are compared with.
DIRECTIONS = 200


def standing_out(rows: np.ndarray, anchors: np.ndarray, seed: int = 0) -> np.ndarray:
    """For each name, 0 to 1: the share of random directions to which samples stand out less.

    How far samples stand out to a text is the mean standardised logit of the ``BEST`` nearest. A
    name of other things is about as good as a random direction: 0.5 in the mean. It is measured
    without clusters and answers. Where classes are large, their samples stand out little.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(500, 32)); rows[:8, 0] += 8
    >>> standing_out(rows, np.eye(1, 32)).round(1).tolist()
    [1.0]
    """
    if len(rows) == 0 or len(anchors) == 0:
        return np.zeros(len(anchors))
    directions = np.random.default_rng(seed).normal(size=(DIRECTIONS, anchors.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    by_chance = np.sort(_best(rows, directions.astype(np.float32)))
    return np.searchsorted(by_chance, _best(rows, anchors)) / DIRECTIONS


def _best(rows: np.ndarray, texts: np.ndarray) -> np.ndarray:
    logits = Standard.of(rows, texts)(rows)
    return np.partition(logits, -min(BEST, len(rows)), axis=0)[-BEST:].mean(axis=0)
