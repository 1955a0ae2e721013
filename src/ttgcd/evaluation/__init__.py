"""Metrics: split accuracy by one Hungarian assignment, and the clearly named extras beside it."""

from __future__ import annotations

from ttgcd.evaluation.accuracy import (
    SplitAccuracy,
    SplitAccuracyMetric,
    accuracy_by_part,
    split_accuracy,
)
from ttgcd.evaluation.agreement import AriMetric, NmiMetric, ari, nmi
from ttgcd.evaluation.named import (
    KnownMatchedToOwnMetric,
    NamedKnownAccuracyMetric,
    known_matched_to_own,
    named_known_accuracy,
)
from ttgcd.evaluation.novelty import (
    NoveltyAurocMetric,
    NoveltyFlag,
    NoveltyFlagMetric,
    novelty_auroc,
    novelty_flag,
)
from ttgcd.evaluation.scores import Scores, ScoresMetric, score_stream

__all__ = [
    "AriMetric",
    "KnownMatchedToOwnMetric",
    "NamedKnownAccuracyMetric",
    "NmiMetric",
    "NoveltyAurocMetric",
    "NoveltyFlag",
    "NoveltyFlagMetric",
    "Scores",
    "ScoresMetric",
    "SplitAccuracy",
    "SplitAccuracyMetric",
    "accuracy_by_part",
    "ari",
    "known_matched_to_own",
    "named_known_accuracy",
    "nmi",
    "novelty_auroc",
    "novelty_flag",
    "score_stream",
    "split_accuracy",
]
