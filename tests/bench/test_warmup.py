"""Short streams: the buffer is at most half of them."""

from __future__ import annotations

from ttgcd.bench.measure import fit_warmup


def test_the_buffer_is_shortened_only_where_it_must_be() -> None:
    assert fit_warmup({"warmup": 1024, "lr": 1}, 10_000) == {"warmup": 1024, "lr": 1}
    assert fit_warmup({"warmup": 1024, "lr": 1}, 308) == {"warmup": 154, "lr": 1}
    assert fit_warmup({"lr": 1}, 308) == {"lr": 1}
    assert fit_warmup({"warmup": 1024}, 1) == {"warmup": 2}
