"""Are sure answers right more often than doubtful ones? Needs labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ttgcd.evaluation.accuracy import match
from ttgcd.evaluation.counts import count
from ttgcd.report.run_files import RunFiles

BINS = 10


def reliability(run: RunFiles, labels: Mapping[str, str]) -> list[tuple[float, float, int]]:
    """How sure, share of right answers, number of samples; one triple a bin, doubtful ones first.

    Right is what the optimal matching of categories to labels calls right. A confidence is a
    probability and gets bins of equal width, so that the bins can be held against the diagonal;
    any other measure of doubt is cut into tenths of the samples.
    """
    rows = [at for at, name in enumerate(run.ids) if name in labels]
    if len(rows) < 2 * BINS:
        return []
    given, sure = run.category[rows], 1.0 - run.doubt[rows]
    _, predicted = np.unique(given, return_inverse=True)
    _, true = np.unique([labels[run.ids[at]] for at in rows], return_inverse=True)
    right = predicted == match(count(predicted, true, 0))[true]
    if "confidence" in run.columns:
        bins = np.minimum((sure * BINS).astype(int), BINS - 1)
        place = sure
    else:
        rank = np.argsort(np.argsort(sure, kind="stable"), kind="stable")
        place = (rank + 0.5) / len(rows)
        bins = (place * BINS).astype(int)
    return [
        (float(place[own].mean()), float(right[own].mean()), int(own.sum()))
        for own in (bins == b for b in range(BINS))
        if own.any()
    ]
