"""Where novel categories begin when the words can be trusted: at the words that explain most of
what no known name explains.

Lloyd steps end in one of very many optima, and where they begin decides far more than how good the
optimum is by its own measure; a start that means something ends in classes more often.
"""

from __future__ import annotations

import heapq

import numpy as np

from ttgcd.prototypes.calibration import Standard
from ttgcd.prototypes.neighbourhood import nearest
from ttgcd.prototypes.partition import (
    NEIGHBOURS,
    centres_of,
    lloyd,
    smooth,
    spread_seeds,
)
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.text_evidence import CONFIDENT, Texts, confident


def explaining(said: np.ndarray, explained: np.ndarray, count: int) -> np.ndarray:
    """Places of at most ``count`` columns of ``said`` (rows x words), chosen greedily so that the
    sum over rows of the best of ``explained`` and all chosen columns grows most at each step.

    Gains only shrink as more is explained, so a word is looked at again only when it leads.
    """
    queue = [(-float(np.maximum(0, s - explained).sum()), word) for word, s in enumerate(said.T)]
    heapq.heapify(queue)
    chosen: list[int] = []
    while queue and len(chosen) < count:
        _, word = heapq.heappop(queue)
        gain = float(np.maximum(0, said[:, word] - explained).sum())
        if gain <= 0:
            continue
        if queue and (-gain, word) > queue[0]:
            heapq.heappush(queue, (-gain, word))
            continue
        chosen.append(word)
        explained = np.maximum(explained, said[:, word])
    return np.array(chosen, np.int64)


def from_words(
    rows: np.ndarray,
    mapped: np.ndarray,
    texts: Texts,
    known: np.ndarray,
    keep: np.ndarray,
    bonus: RowBonus,
    expected: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Labels: known centres at the confident samples (``known`` are the names, ``keep`` the
    mask), novel ones at the better half of the samples of words that explain the others.

    Texts are asked about the mean of a row and its nearest neighbours, which is calmer. Where words
    are too few, the rest are spread seeds.
    """
    n_known, count = len(texts.anchors), bonus.count
    near = nearest(mapped, NEIGHBOURS)
    smoothed = smooth(mapped, near)
    calm = (rows + rows[near].sum(axis=1)) / (1 + near.shape[1])
    names, words = (Standard.of(calm, t)(calm) for t in (texts.anchors, texts.words))
    chosen = explaining(words, names.max(axis=1), count - n_known)
    logits = np.concatenate([names, words[:, chosen]], axis=1)
    says, best = logits.argmax(axis=1), logits.max(axis=1)
    sure = confident(says, best, logits.shape[1], CONFIDENT)
    centres = centres_of(smoothed[sure], says[sure], logits.shape[1])
    centres[:n_known] = centres_of(smoothed[keep], known[keep], n_known)
    some = np.linalg.norm(centres, axis=1) > 0
    some[:n_known] = True
    centres = centres[some]
    explained = smoothed @ centres.T
    explained[:, :n_known] += bonus.first(n_known)
    seeds = spread_seeds(smoothed, explained.max(axis=1), count - len(centres), rng)
    start = np.concatenate([centres, smoothed[seeds]])
    return lloyd(smoothed, start, bonus, n_known, expected).labels
