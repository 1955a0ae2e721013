from __future__ import annotations

import numpy as np
import pytest

from ttgcd.prototypes.drift import BLOCK, CHANGED, Recent

RNG = np.random.default_rng(0)


def test_the_recent_mean_is_that_of_the_last_two_blocks_at_most():
    rows = RNG.normal(size=(5 * BLOCK + 64, 3))
    recent = Recent(3)
    for start in range(0, len(rows), 64):
        recent.add(rows[start : start + 64])
    count = int(recent.counts.sum())
    assert BLOCK <= count <= 2 * BLOCK
    assert np.allclose(recent.sums.sum(axis=0), rows[-count:].sum(axis=0))


def test_the_shift_is_near_one_while_nothing_changes_and_large_when_the_mean_moves():
    rows = RNG.normal(size=(2 * BLOCK, 50))
    recent = Recent(50)
    recent.add(rows)
    assert recent.shift(np.zeros(50), 50.0) == pytest.approx(1.0, abs=0.5)
    assert recent.shift(np.full(50, 0.5), 50.0) > CHANGED


def test_a_few_samples_say_nothing():
    recent = Recent(2)
    recent.add(np.ones((10, 2)))
    assert recent.shift(np.zeros(2), 0.1) == 0.0
