"""The fit by which workers answer (``engines/foretold.py``), sent once for every fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ttgcd.engines.cluster.pool import require_ray
from ttgcd.engines.cluster.worker import Done, MethodCopy
from ttgcd.engines.foretold import AnswersByFit, Foretold
from ttgcd.methods.base import Method
from ttgcd.streams.base import Batch


class SharedFit:
    """Follows a method: what workers need to answer as it does now, or nothing."""

    def __init__(self, method: Method) -> None:
        behind = method.behind
        self._method = behind if isinstance(behind, AnswersByFit) else None
        self.copy = None if self._method is None else MethodCopy.of(behind)
        self.number: int | None = None
        self.reference: list[Any] = []

    def look(self) -> None:
        """A new fit replaces the one before; answers under that one are made again where they
        are heard, and need not be asked for."""
        if self._method is not None and self._method.fit != self.number:
            self.number = self._method.fit
            known = self.number is not None
            self.reference = [require_ray().put(self._method.answering())] if known else []


def with_answer(batch: Batch, done: Done) -> Batch:
    """The batch with what the worker has said of it."""
    if done.answer is None or batch.features is None:
        return batch
    # A copy: what Ray hands over lies in the object store, which is to be free again.
    answer = done.answer.at(np.arange(len(done.answer)))
    return Foretold(**vars(batch), answer=answer, fit=done.fit)
