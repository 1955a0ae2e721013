"""Blocks worked on side by side."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from ttgcd.engines.in_order import in_order


def test_blocks_come_in_their_order_although_later_ones_are_done_first() -> None:
    def work(number: int) -> int:
        time.sleep(0.02 if number % 2 == 0 else 0.0)
        return number

    assert list(in_order(work, range(9))) == list(range(9))


def test_no_more_blocks_are_begun_than_fit_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttgcd.engines.in_order.blas_threads", lambda: 2)
    begun: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> int:
        with lock:
            begun.append(number)
        return number

    blocks = in_order(work, range(100))
    next(blocks)
    time.sleep(0.1)
    assert len(begun) <= 4  # the one handed over, and three in hand
    blocks.close()


def test_an_error_in_a_block_is_raised_at_its_turn() -> None:
    def work(number: int) -> int:
        if number == 2:
            raise ValueError("block two")
        return number

    blocks = in_order(work, range(5))
    assert [next(blocks), next(blocks)] == [0, 1]
    with pytest.raises(ValueError, match="block two"):
        next(blocks)


def test_products_of_the_blocks_are_those_of_one_thread() -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.standard_normal((512, 64)), rng.standard_normal((64, 30))
    blocks = in_order(lambda at: rows[at : at + 128] @ columns, range(0, 512, 128))
    assert np.allclose(np.concatenate(list(blocks)), rows @ columns)
