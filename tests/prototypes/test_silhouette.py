from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from ttgcd.prototypes import silhouette as module
from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.silhouette import silhouette

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [2, 5, 30])
def test_it_is_the_silhouette_of_all_pairs(count, monkeypatch):
    rows, labels = unit(RNG.normal(size=(90, 6))), RNG.integers(count, size=90)
    wanted = silhouette_score(rows, labels, metric="cosine")
    assert silhouette(rows, labels) == pytest.approx(wanted, abs=1e-5)
    assert silhouette(rows, 3 * labels + 7) == pytest.approx(wanted, abs=1e-5)
    monkeypatch.setattr(module, "_CHUNK", 16)
    assert silhouette(rows, labels) == pytest.approx(wanted, abs=1e-5)


def test_lone_samples_and_one_cluster_have_none():
    rows = unit(RNG.normal(size=(4, 6)))
    assert silhouette(rows, np.arange(4)) == 0
    assert silhouette(rows, np.zeros(4, int)) == 0
    assert silhouette(rows[:0], np.zeros(0, int)) == 0
