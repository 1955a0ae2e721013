"""Predictions of all streams, several at a time through one encoder."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from ttgcd.vlm.encoder import CHUNK, Encoder

#: Requests that come within this time share a forward pass.
WINDOW = 0.004
#: An image whose batch is whole waits so long for the answer of the session itself.
DEADLINE = 0.4
_LOOK_AGAIN = 0.02


class Predicts(Protocol):
    """A stream, seen from here."""

    @property
    def encoder(self) -> Encoder: ...

    def pixels(self, index: int) -> torch.Tensor: ...

    def pending(self, index: int) -> bool: ...

    def will_learn(self, index: int) -> bool: ...

    def predicted(self, index: np.ndarray, features: np.ndarray) -> None: ...


@dataclass(frozen=True)
class _Wish:
    stream: Predicts
    index: int
    since: float = field(default_factory=time.monotonic)


class Batcher:
    """One thread that answers, by prediction, what the sessions do not answer in time.

    Streams whose encoders are equal (the same model, no norms of their own yet) share a pass.
    """

    def __init__(self, heard: Callable[[int, float], None] | None = None) -> None:
        self._heard = heard or (lambda images, seconds: None)
        self._wishes: list[_Wish] = []
        self._wake = threading.Condition()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="ttgcd-predict", daemon=True)
        self._thread.start()

    def ask(self, stream: Predicts, indexes: Sequence[int]) -> None:
        with self._wake:
            self._wishes += [_Wish(stream, index) for index in indexes]
            self._wake.notify()

    def __len__(self) -> int:
        return len(self._wishes)

    def stop(self) -> None:
        with self._wake:
            self._stop = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        waiting: list[_Wish] = []
        while True:
            with self._wake:
                patience = _LOOK_AGAIN if waiting else None
                self._wake.wait_for(lambda: self._wishes or self._stop, patience)
                if self._stop:
                    return
            time.sleep(WINDOW)
            with self._wake:
                wishes, self._wishes = [*waiting, *self._wishes], []
            now = time.monotonic()
            wishes = [wish for wish in wishes if wish.stream.pending(wish.index)]
            patient = [now - w.since < DEADLINE and w.stream.will_learn(w.index) for w in wishes]
            waiting = [wish for wish, later in zip(wishes, patient) if later]
            ready = [wish for wish, later in zip(wishes, patient) if not later]
            waiting += ready[CHUNK:]
            self._answer(ready[:CHUNK])

    def _answer(self, wishes: Sequence[_Wish]) -> None:
        groups: dict[str, list[_Wish]] = defaultdict(list)
        for wish in wishes:
            groups[wish.stream.encoder.fingerprint].append(wish)
        for group in groups.values():
            began = time.perf_counter()
            images = torch.stack([wish.stream.pixels(wish.index) for wish in group])
            features = group[0].stream.encoder(images)
            self._heard(len(group), time.perf_counter() - began)
            for stream in dict.fromkeys(wish.stream for wish in group):
                mine = [at for at, wish in enumerate(group) if wish.stream is stream]
                index = np.array([group[at].index for at in mine], np.int64)
                stream.predicted(index, features[mine])
