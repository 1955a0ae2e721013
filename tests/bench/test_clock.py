"""Time by batch, the warm-up apart."""

from __future__ import annotations

import pytest

from ttgcd.bench.clock import BatchClock
from ttgcd.methods.answer import Answer
from ttgcd.testing.model import batches


def run(clock, cost):
    """A method that spends ``cost`` (saved seconds, so that the test need not sleep) a batch."""
    for number, batch in enumerate(clock):
        cost[0] += cost[1][number]
        clock.write(batch, Answer.empty())
    clock.write(None, Answer.empty())


@pytest.mark.parametrize("warmup,expected", [(0, None), (10, 8.0), (16, 8.0), (17, 9.0)])
def test_the_warmup_ends_with_the_batch_of_its_last_sample(warmup, expected):
    import numpy as np

    cost = [0.0, [3.0, 5.0, 1.0, 1.0, 2.0]]
    stream = batches(np.eye(40, dtype=np.float32), 8)
    clock = BatchClock(stream, lambda: cost[0], warmup)
    run(clock, cost)
    assert clock.seconds == pytest.approx(cost[1], abs=0.05)
    assert clock.steady() == pytest.approx(1.0, abs=0.05)
    if expected is None:
        assert clock.warmup_seconds is None and clock.warmup_bytes is None
    else:
        assert clock.warmup_seconds == pytest.approx(expected, abs=0.05)
        assert clock.warmup_bytes > 0
    assert clock.stream_bytes() > 0
