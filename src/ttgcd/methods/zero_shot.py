"""Zero-shot: every sample gets the known class of the nearest text anchor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task
from ttgcd.prototypes.zero_shot import pseudo_labels, zero_shot_probabilities
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


def zero_shot_rows(task: Task, start: int, features: np.ndarray, final: bool = True) -> Answer:
    """The text label of every sample (Eq. 1), its cosine and its margin (Eq. 2)."""
    labels, margins = pseudo_labels(
        zero_shot_probabilities(features, task.anchors, task.logit_scale)
    )
    best = np.einsum("nd,nd->n", features, task.anchors[labels])
    return Answer.make(start, labels, best, margins, novelty=-best, final=final, features=features)


@dataclass(kw_only=True)
class ZeroShot(Method):
    """Never answers with a novel category; ``novelty`` is minus the best cosine."""

    name: ClassVar[str] = "zero-shot"

    def start(self, task: Task) -> None:
        super().start(task)
        self._seen = 0

    def observe(self, batch: Batch) -> Answer:
        self._seen += len(batch)
        return self.predict(batch)

    def finish(self) -> Answer:
        return Answer.empty()

    def predict(self, batch: Batch) -> Answer:
        return zero_shot_rows(self.task, batch.start, self.encode(batch))

    def prototypes(self) -> np.ndarray:
        empty = np.zeros((self.task.novel, self.task.anchors.shape[1]), np.float32)
        return np.concatenate([self.task.anchors.astype(np.float32), empty])

    def state_dict(self) -> State:
        return State(
            {"anchors": self.task.anchors.astype(np.float32)},
            self.described(self._seen),
        )

    def load_state_dict(self, state: State) -> None:
        self.check_described(state.values)
        self._seen = state.values["seen"]
