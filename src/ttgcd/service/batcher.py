"""Predictions of all streams, several at a time through one encoder."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch

from ttgcd.vlm.encoder import CHUNK, Encoder

#: Requests that come within this time share a forward pass.
WINDOW = 0.004
#: An image whose batch is whole waits so long for the answer of the session itself, and longer
#: while the session gets on: to encode it twice would only slow that down.
DEADLINE = 2.0
#: An image that nobody waits for is predicted after this time, unless its batch is whole by then.
CALM = 0.3
_LOOK_AGAIN = 0.02


class Predicts(Protocol):
    """A stream, seen from here."""

    @property
    def encoder(self) -> Encoder: ...

    def pixels(self, index: int) -> torch.Tensor: ...

    def encoded(self, index: np.ndarray) -> np.ndarray | None: ...

    def open_ones(self, index: np.ndarray, patient: bool) -> tuple[np.ndarray, np.ndarray]: ...

    def predicted(self, index: np.ndarray, features: np.ndarray) -> None: ...


@dataclass(frozen=True)
class _Wish:
    stream: Predicts
    index: np.ndarray
    hurry: bool
    since: float = field(default_factory=time.monotonic)

    def sorted_out(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """What is to be predicted now, and what to wait for."""
        age = now - self.since
        if not self.hurry and age < CALM:
            return self.index[:0], self.index
        return self.stream.open_ones(self.index, not self.hurry or age < DEADLINE)


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

    def ask(self, stream: Predicts, index: np.ndarray, hurry: bool) -> None:
        with self._wake:
            self._wishes.append(_Wish(stream, index, hurry))
            if hurry:
                self._wake.notify()

    def stop(self) -> None:
        with self._wake:
            self._stop = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        waiting: list[_Wish] = []
        while True:
            with self._wake:
                patience = _LOOK_AGAIN if any(wish.hurry for wish in waiting) else CALM
                self._wake.wait_for(lambda: self._hurry() or self._stop, patience)
                if self._stop:
                    return
            time.sleep(WINDOW)
            with self._wake:
                wishes, self._wishes = [*waiting, *self._wishes], []
            # Who waits for an answer comes first, then who came first.
            wishes.sort(key=lambda wish: (not wish.hurry, wish.since))
            waiting, now, due, room = [], time.monotonic(), [], CHUNK
            for wish in wishes:
                predict, later = wish.sorted_out(now)
                due.append(replace(wish, index=predict[:room]))
                later = np.concatenate([predict[room:], later])
                room -= min(room, len(predict))
                if len(later):
                    waiting.append(replace(wish, index=later))
            self._answer(due)

    def _hurry(self) -> bool:
        return any(wish.hurry for wish in self._wishes)

    def _answer(self, wishes: Sequence[_Wish]) -> None:
        groups: dict[str, list[tuple[Predicts, int]]] = defaultdict(list)
        for wish in wishes:
            if not len(wish.index):
                continue
            if (features := wish.stream.encoded(wish.index)) is not None:
                wish.stream.predicted(wish.index, features)
            else:
                group = groups[wish.stream.encoder.fingerprint]
                group += [(wish.stream, index) for index in wish.index.tolist()]
        for group in groups.values():
            began = time.perf_counter()
            images = torch.stack([stream.pixels(index) for stream, index in group])
            features = group[0][0].encoder(images)
            self._heard(len(group), time.perf_counter() - began)
            for stream in dict.fromkeys(stream for stream, _ in group):
                mine = [at for at, (owner, _) in enumerate(group) if owner is stream]
                index = np.array([group[at][1] for at in mine], np.int64)
                stream.predicted(index, features[mine])
