"""Answers made where the features are, for methods whose fit stands for a while.

Between two fits the answers of such a method depend on the features alone, so a copy elsewhere can
give them, and what is left in order is learning. A batch that was answered under an earlier fit is
answered again here: the answers are those of ``observe``, bit for bit, and nothing is merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch


@runtime_checkable
class AnswersByFit(Protocol):
    """A method that answers from its last fit and nothing else."""

    @property
    def fit(self) -> int | None:
        """Tells fits apart; None as long as there is none, or answers depend on more."""
        ...

    def answering(self) -> State:
        """What a copy has to load to answer, without what the method learns from."""
        ...

    def answer(self, batch: Batch) -> Answer:
        """The rows that ``observe`` would give. Pure."""
        ...

    def observe_answered(self, batch: Batch, answer: Answer) -> Answer:
        """``observe`` for a batch that a copy has answered under the same fit."""
        ...


@dataclass(frozen=True)
class Foretold(Batch):
    """A batch with the answer of a copy, and the fit that the copy had."""

    answer: Answer = field(default_factory=Answer.empty)
    fit: int = -1


def observed(method: Method, batch: Batch) -> Answer:
    """``method.observe``, with what a copy has said if that still stands."""
    behind = method.behind
    if not isinstance(batch, Foretold) or not isinstance(behind, AnswersByFit):
        return method.observe(batch)
    if behind.fit != batch.fit or len(batch.answer) != len(batch):
        return method.observe(batch)
    return behind.observe_answered(batch, batch.answer)
