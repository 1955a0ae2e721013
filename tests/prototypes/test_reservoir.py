from __future__ import annotations

import numpy as np

from ttgcd.prototypes.reservoir import Reservoir, priority


def _filled(capacity: int, rows: np.ndarray, batch: int, seed: int = 3) -> Reservoir:
    reservoir = Reservoir(capacity, seed)
    for start in range(0, len(rows), batch):
        reservoir.add(rows[start : start + batch])
    return reservoir


def test_everything_is_kept_in_order_until_the_reservoir_is_full():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    reservoir = _filled(50, rows, 7)
    assert np.array_equal(reservoir.rows, rows)
    assert np.array_equal(reservoir.index, np.arange(50))


def test_what_is_kept_does_not_depend_on_the_batches():
    rows = np.random.default_rng(1).normal(size=(1000, 2)).astype(np.float32)
    one, many = _filled(64, rows, 1000), _filled(64, rows, 13)
    assert np.array_equal(one.index, many.index)
    assert np.array_equal(one.rows, many.rows)
    assert np.array_equal(one.rows, rows[one.index])


def test_it_keeps_the_rows_of_lowest_priority():
    index = np.arange(500)
    lowest = np.sort(np.argsort(priority(index, 3))[:40])
    reservoir = _filled(40, np.zeros((500, 1), np.float32), 50)
    assert np.array_equal(reservoir.index, lowest)


def test_early_and_late_rows_are_kept_equally_often():
    kept = np.zeros(200)
    rows = np.zeros((200, 1), np.float32)
    for seed in range(400):
        kept[_filled(20, rows, 50, seed).index] += 1
    # 40 expected each, a deviation of 6: tenths of the stream hold 800 with a deviation of 27.
    assert np.all(np.abs(kept.reshape(10, 20).sum(axis=1) - 800) < 5 * 27)


def test_a_reservoir_never_grows_beyond_its_capacity():
    reservoir = _filled(10, np.zeros((1000, 4), np.float32), 100)
    assert reservoir.rows.shape == (10, 4)
    assert reservoir.seen == 1000
