"""Every metric of one stream in one record."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ttgcd.evaluation.accuracy import split_accuracy_of
from ttgcd.evaluation.agreement import ari_of, nmi_of
from ttgcd.evaluation.counts import Counts, count
from ttgcd.evaluation.named import known_matched_to_own_of, named_known_accuracy_of
from ttgcd.evaluation.novelty import NoveltyAurocMetric, novelty_auroc, novelty_flag_of


@dataclass(frozen=True)
class Scores:
    """Fractions in 0..1 (``ari`` may be below 0); NaN where a metric is not defined."""

    all: float
    known: float
    novel: float
    named_known_accuracy: float
    known_matched_to_own: float
    novelty_auroc: float
    novelty_f1: float
    novelty_precision: float
    novelty_recall: float
    nmi: float
    ari: float
    samples: int
    known_samples: int
    novel_samples: int

    def as_percent(self) -> dict[str, float | int]:
        """The fractions times 100, the counts as they are."""
        return {
            key: value if isinstance(value, int) else 100.0 * value
            for key, value in asdict(self).items()
        }


def scores_of(counts: Counts, auroc: float = float("nan")) -> Scores:
    accuracy, flag = split_accuracy_of(counts), novelty_flag_of(counts)
    known = int(counts.table[:, : counts.n_known].sum())
    samples = int(counts.table.sum())
    return Scores(
        all=accuracy.all,
        known=accuracy.known,
        novel=accuracy.novel,
        named_known_accuracy=named_known_accuracy_of(counts),
        known_matched_to_own=known_matched_to_own_of(counts),
        novelty_auroc=auroc,
        novelty_f1=flag.f1,
        novelty_precision=flag.precision,
        novelty_recall=flag.recall,
        nmi=nmi_of(counts),
        ari=ari_of(counts),
        samples=samples,
        known_samples=known,
        novel_samples=samples - known,
    )


def score_stream(
    predicted: ArrayLike,
    true: ArrayLike,
    n_known: int,
    novelty_score: ArrayLike | None = None,
) -> Scores:
    """All metrics of one stream; ``novelty_score`` (higher is more novel) adds the AUROC.

    >>> score_stream([0, 0, 1, 1], [0, 0, 1, 1], n_known=1).as_percent()["novel"]
    100.0
    """
    counts = count(predicted, true, n_known)
    if novelty_score is None:
        return scores_of(counts)
    return scores_of(counts, novelty_auroc(novelty_score, true, n_known))


class ScoresMetric:
    """``score_stream`` over batches."""

    def __init__(self, n_known: int) -> None:
        self.counts = Counts(n_known)
        self.auroc = NoveltyAurocMetric(n_known)

    def update(
        self, predicted: ArrayLike, true: ArrayLike, novelty_score: ArrayLike | None = None
    ) -> None:
        self.counts.add(predicted, true)
        if novelty_score is not None:
            self.auroc.update(novelty_score, true)

    def compute(self) -> Scores:
        scored = sum(len(part) for part in self.auroc.scores)
        # A score for only some of the samples would be an AUROC of something else.
        complete = scored and scored == int(np.sum(self.counts.table))
        return scores_of(self.counts, self.auroc.compute() if complete else float("nan"))

    def reset(self) -> None:
        self.counts.reset()
        self.auroc.reset()
