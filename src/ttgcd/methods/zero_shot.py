"""Zero-shot: every sample gets the known class of the nearest text anchor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task
from ttgcd.prototypes.text_labels import pseudo_labels, zero_shot_probabilities

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


def text_says(task: Task, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The text label of every sample and its margin omega (Eq. 1-2)."""
    return pseudo_labels(zero_shot_probabilities(features, task.anchors, task.logit_scale))


def zero_shot_rows(task: Task, start: int, features: np.ndarray, final: bool = True) -> Answer:
    """The text label of every sample (Eq. 1), its cosine and its margin (Eq. 2). Without names
    all samples are in the one group that there is so far, which says nothing about any."""
    labels, margins = text_says(task, features)
    best = np.zeros(len(features), np.float32)
    if task.n_known:
        best = np.einsum("nd,nd->n", features, task.anchors[labels])
    return Answer.make(start, labels, best, margins, novelty=-best, final=final, features=features)


@dataclass(kw_only=True)
class ZeroShot(Method):
    """Never answers with a novel category; ``novelty`` is minus the best cosine."""

    name: ClassVar[str] = "zero-shot"

    @property
    def wants_count(self) -> bool:
        return False

    def observe(self, batch: Batch) -> Answer:
        self.seen += len(batch)
        return self.predict(batch)

    def predict(self, batch: Batch) -> Answer:
        assert batch.features is not None
        return zero_shot_rows(self.task, batch.start, batch.features)

    def prototypes(self) -> np.ndarray:
        return self.task.anchors.astype(np.float32)
