"""Batches that are encoded before it is their turn are the same batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ttgcd.engines import ahead
from ttgcd.engines.ahead import ahead_of, depth
from ttgcd.streams.base import Batch


@dataclass
class Wants:
    wants_features: bool = True
    wants_images: bool = False
    wants_count: bool = False


class Doubling:
    """An encoder whose features tell its factor; it waits until it is allowed to go on."""

    def __init__(self, factor: float = 2.0) -> None:
        self.factor, self.allowed = factor, threading.Event()
        self.allowed.set()

    def __call__(self, images: torch.Tensor) -> np.ndarray:
        assert self.allowed.wait(60)
        return self.factor * images.float().mean(dim=(1, 2, 3)).numpy()[:, None]


@dataclass
class Session:
    encoder: Any
    method: Any = field(default_factory=Wants)
    seconds: dict[str, float] = field(default_factory=lambda: {"encode": 0.0, "input": 0.0})


def batches(count: int, taken: list[int] | None = None, side: int = 4) -> Iterator[Batch]:
    for number in range(count):
        if taken is not None:
            taken.append(number)
        images = torch.full((2, 3, side, side), number, dtype=torch.uint8)
        places = (2 * number, 2 * number + 1)
        yield Batch(tuple(map(str, places)), places[0], places, places[1] + 1, images=images)


def test_batches_come_in_order_with_their_features():
    found = list(ahead_of(batches(40), Session(Doubling())))
    assert [batch.start for batch in found] == [2 * n for n in range(40)]
    for number, batch in enumerate(found):
        assert batch.features is not None and batch.features.tolist() == [[2 * number]] * 2


def test_a_batch_is_handed_on_when_it_is_encoded_and_no_more_are_taken_than_may_wait(monkeypatch):
    monkeypatch.setattr(ahead, "MOST", 3)
    encoder, taken = Doubling(), []
    encoder.allowed.clear()
    coming = ahead_of(batches(40, taken), Session(encoder))
    later = threading.Timer(0.5, encoder.allowed.set)
    later.start()
    assert next(coming).start == 0
    assert taken == [0, 1, 2, 3]  # its own and three that wait
    coming.close()


def test_what_an_encoder_of_before_has_made_is_not_used():
    session = Session(Doubling(2.0))
    found = []
    for batch in ahead_of(batches(6), session):
        found.append(None if batch.features is None else float(batch.features[0, 0]))
        if batch.start == 2:
            session.encoder = Doubling(3.0)
    assert found[:2] == [0.0, 2.0]
    for number, value in enumerate(found[2:], 2):
        assert value in (None, 3.0 * number)  # the session encodes those without
    assert None in found[2:]


def test_a_method_that_wants_images_gets_them_as_they_are():
    session = Session(Doubling(), Wants(wants_images=True))
    assert all(batch.features is None for batch in ahead_of(batches(5), session))


def test_large_images_wait_in_small_numbers():
    assert depth(torch.zeros((128, 3, 64, 64), dtype=torch.uint8)) == ahead.MOST
    assert depth(torch.zeros((128, 3, 336, 336), dtype=torch.uint8)) == 1
    assert depth(torch.zeros((128, 3, 224, 224), dtype=torch.uint8)) == 3


def test_torch_has_its_threads_back_when_a_small_model_is_done(monkeypatch):
    """MKL takes a thread's number of threads as said to the whole process."""
    said: list[tuple[str, int]] = []
    real = torch.set_num_threads

    def tell(count: int) -> None:
        said.append((threading.current_thread().name, count))
        real(count)

    before = torch.get_num_threads()
    try:
        real(2)
        monkeypatch.setattr(torch, "set_num_threads", tell)
        assert len(list(ahead_of(batches(12), Session(Doubling())))) == 12
    finally:
        real(before)
    assert {count for name, count in said if name.startswith("ttgcd-ahead")} == {1}
    assert said[-1] == (threading.current_thread().name, 2)


def test_batches_of_a_large_model_share_all_threads_however_few_images_they_hold():
    threads: set[str] = set()

    class Who(Doubling):
        def __call__(self, images: torch.Tensor) -> np.ndarray:
            threads.add(threading.current_thread().name)
            return super().__call__(images)

    assert len(list(ahead_of(batches(12, side=224), Session(Who())))) == 12
    assert len(threads) == 1
