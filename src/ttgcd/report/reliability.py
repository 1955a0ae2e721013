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

    A confidence is the probability of what it is about (the named class is right, or a sample of no
    named class was called novel) and gets bins of equal width, so that the bins can be held against
    the diagonal. Any other measure of doubt is cut into tenths of the samples; right is then what
    the optimal matching of categories to labels calls right.
    """
    rows = [at for at, name in enumerate(run.ids) if name in labels]
    if len(rows) < 2 * BINS:
        return []
    given, sure = run.category[rows], 1.0 - run.doubt[rows]
    said = [labels[name] for name in run.ids.of(rows)]
    if run.calibrated:
        known = {c.id: c.name for c in run.categories if c.kind == "known"}
        named = set(known.values())
        right = np.array(
            [
                known[c] == label if c in known else label not in named
                for c, label in zip(given, said)
            ]
        )
        bins = np.minimum((sure * BINS).astype(int), BINS - 1)
        place = sure
    else:
        _, predicted = np.unique(given, return_inverse=True)
        _, true = np.unique(said, return_inverse=True)
        right = predicted == match(count(predicted, true, 0))[true]
        rank = np.argsort(np.argsort(sure, kind="stable"), kind="stable")
        place = (rank + 0.5) / len(rows)
        bins = (place * BINS).astype(int)
    return [
        (float(place[own].mean()), float(right[own].mean()), int(own.sum()))
        for own in (bins == b for b in range(BINS))
        if own.any()
    ]
