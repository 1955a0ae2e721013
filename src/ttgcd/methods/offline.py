"""Methods that keep the frozen features of the whole stream and cluster them when it ends."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task, features_of
from ttgcd.methods.zero_shot import zero_shot_rows
from ttgcd.prototypes.bank import normalise
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


@dataclass(kw_only=True)
class Offline(Method):
    """Provisional zero-shot answers on arrival, clusters at the end.

    Memory grows with the stream: one feature a sample.
    """

    answers: ClassVar[Literal["arrival", "end"]] = "end"

    @abstractmethod
    def cluster(self, features: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Category of every sample, and one centre a category (zero rows for empty ones)."""

    def start(self, task: Task) -> None:
        super().start(task)
        self.centres: np.ndarray | None = None
        self._features: list[np.ndarray] = []

    def observe(self, batch: Batch) -> Answer:
        features = features_of(batch)
        self._features.append(features)
        self.seen += len(batch)
        return zero_shot_rows(self.task, batch.start, features, final=False)

    def finish(self) -> Answer:
        if not self.seen:
            return Answer.empty()
        features = np.concatenate(self._features)
        text = zero_shot_rows(self.task, 0, features)
        categories, centres = self.cluster(features, text.margin)
        self.centres = normalise(np.asarray(centres, np.float32))
        return self._rows(text, features, categories)

    def predict(self, batch: Batch) -> Answer:
        features = features_of(batch)
        if self.centres is None:
            return zero_shot_rows(self.task, batch.start, features, final=False)
        cosines = features @ self.centres.T
        cosines[:, ~self.centres.any(axis=1)] = -np.inf
        text = zero_shot_rows(self.task, batch.start, features)
        return self._rows(text, features, cosines.argmax(axis=1))

    def _rows(self, text: Answer, features: np.ndarray, categories: np.ndarray) -> Answer:
        assert self.centres is not None
        return Answer.make(
            int(text.index[0]) if len(text) else 0,
            categories,
            np.einsum("nd,nd->n", features, self.centres[categories]),
            text.margin,
            novelty=text.novelty,
            features=features,
        )

    def prototypes(self) -> np.ndarray | None:
        if self.centres is None:
            return np.zeros(
                (self.task.n_known + self.n_novel, self.task.anchors.shape[1]), np.float32
            )
        return self.centres

    def health(self) -> dict[str, Any]:
        clusters = None if self.centres is None else int(self.centres.any(axis=1).sum())
        return {"clusters": clusters}

    def state_dict(self) -> State:
        arrays = {"anchors": self.task.anchors.astype(np.float32)}
        if self._features:
            arrays["features"] = np.concatenate(self._features)
        if self.centres is not None:
            arrays["centres"] = self.centres
        return State(arrays, self.described(self.seen))

    def load_state_dict(self, state: State) -> None:
        arrays, values = state
        self.check_described(values)
        self._features = [np.array(arrays["features"])] if "features" in arrays else []
        self.centres = np.array(arrays["centres"]) if "centres" in arrays else None
