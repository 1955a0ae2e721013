"""Known against novel as a detection task: is a sample of a class nobody named flagged as such?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ttgcd.errors import InputError
from ttgcd.evaluation.counts import Counts, CountsMetric, as_ids, count, share


class NoveltyFlag(NamedTuple):
    """How good the flag "this is none of the known classes" is (novel is the positive class)."""

    f1: float
    precision: float
    recall: float


def novelty_flag_of(counts: Counts) -> NoveltyFlag:
    table, known = counts.table, counts.n_known
    found = table[known:, known:].sum()
    flagged, novel = table[known:].sum(), table[:, known:].sum()
    return NoveltyFlag(
        f1=share(2 * found, flagged + novel) if novel else float("nan"),
        precision=share(found, flagged),
        recall=share(found, novel),
    )


def novelty_flag(predicted: ArrayLike, true: ArrayLike, n_known: int) -> NoveltyFlag:
    """F1, precision and recall of "assigned to a novel id" against "of a novel class".

    >>> novelty_flag([0, 2, 2, 0], [0, 1, 2, 2], n_known=2).f1
    0.5
    """
    return novelty_flag_of(count(predicted, true, n_known))


class NoveltyFlagMetric(CountsMetric):
    """``novelty_flag`` over batches."""

    def compute(self) -> NoveltyFlag:
        return novelty_flag_of(self.counts)


def novelty_auroc(novelty_score: ArrayLike, true: ArrayLike, n_known: int) -> float:
    """Chance that a novel sample scores above a known one (ties count half). NaN without both.

    >>> novelty_auroc([0.1, 0.2, 0.9], [0, 1, 2], n_known=2)
    1.0
    """
    from scipy.stats import rankdata  # a second to import, and seldom wanted

    scores, ids = np.asarray(novelty_score, dtype=np.float64), as_ids(true, "true")
    if scores.shape != ids.shape:
        raise InputError(f"novelty_score has shape {scores.shape} and true has {ids.shape}")
    if not np.isfinite(scores).all():
        raise InputError("novelty_score holds NaN or infinite values")
    novel = ids >= n_known
    positives, negatives = int(novel.sum()), int((~novel).sum())
    if not positives or not negatives:
        return float("nan")
    above = rankdata(scores)[novel].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


class NoveltyAurocMetric:
    """``novelty_auroc`` over batches: keeps one score and one bit per sample."""

    def __init__(self, n_known: int) -> None:
        self.n_known = n_known
        self.reset()

    def update(self, novelty_score: ArrayLike, true: ArrayLike) -> None:
        self.scores.append(np.asarray(novelty_score, dtype=np.float64))
        self.ids.append(as_ids(true, "true"))

    def compute(self) -> float:
        return novelty_auroc(np.concatenate(self.scores), np.concatenate(self.ids), self.n_known)

    def reset(self) -> None:
        self.scores: list[np.ndarray] = [np.zeros(0)]
        self.ids: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
