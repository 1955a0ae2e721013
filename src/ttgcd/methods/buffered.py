"""Methods on a frozen encoder that look at the early stream before they begin."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task
from ttgcd.methods.zero_shot import zero_shot_rows
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


@dataclass(kw_only=True)
class Buffered(Method):
    """Answers the first ``warmup`` samples provisionally by zero-shot, then begins, goes through
    the kept batches in their order and from there on answers every batch as it comes.

    The buffer ends with the batch in which ``warmup`` is reached, or with the stream.
    """

    #: Whether learning needs the images and not only their features.
    keeps_images: ClassVar[bool] = False

    warmup: int = 1024

    def __post_init__(self) -> None:
        if self.warmup < 1:
            raise InputError(f"warmup must be 1 or more, got {self.warmup}")

    @abstractmethod
    def begin(self, parts: list[np.ndarray]) -> None:
        """Set up the categories from the features of the buffered batches."""

    @abstractmethod
    def answer(self, start: int, features: np.ndarray) -> Answer:
        """The answer of the present state; changes nothing."""

    @abstractmethod
    def learn(self, batch: Batch, features: np.ndarray, warming: bool) -> Answer:
        """Answer for a batch and learn from it; ``warming`` for a batch of the buffer."""

    @abstractmethod
    def learned_arrays(self) -> dict[str, np.ndarray]:
        """What was learned, as plain arrays; called once the method has begun."""

    @abstractmethod
    def load_learned(self, arrays: dict[str, np.ndarray]) -> None:
        """The inverse of ``learned_arrays``."""

    # -- the stream ---------------------------------------------------------------------------

    def start(self, task: Task) -> None:
        super().start(task)
        self.begun = False
        self._seen = 0
        self._buffer: list[tuple[Batch, np.ndarray]] = []

    def observe(self, batch: Batch) -> Answer:
        features = self.encode(batch)
        self._seen += len(batch)
        if self.begun:
            return self.learn(batch, features, warming=False)
        kept = batch if self.keeps_images else replace(batch, images=None)
        self._buffer.append((kept, features))
        if self._seen < self.warmup:
            return zero_shot_rows(self.task, batch.start, features, final=False)
        return self._end_warmup()

    def finish(self) -> Answer:
        return self._end_warmup() if self._buffer else Answer.empty()

    def predict(self, batch: Batch) -> Answer:
        features = self.encode(batch)
        if not self.begun:
            return zero_shot_rows(self.task, batch.start, features, final=False)
        return self.answer(batch.start, features)

    def _end_warmup(self) -> Answer:
        self.begin([features for _, features in self._buffer])
        self.begun = True
        rows = [self.learn(batch, features, warming=True) for batch, features in self._buffer]
        self._buffer = []
        return Answer.concat(rows)

    def rows(self, start: int, features: np.ndarray, cosines: np.ndarray) -> Answer:
        """Nearest of the categories 0..K-1 (known) and K.. (novel) for given cosines."""
        n_known = self.task.n_known
        known_best = cosines[:, :n_known].max(axis=1, initial=-1.0)
        novel_best = cosines[:, n_known:].max(axis=1, initial=-1.0)
        text = zero_shot_rows(self.task, start, features)
        return Answer.make(
            start,
            cosines.argmax(axis=1),
            cosines.max(axis=1),
            text.margin,
            novelty=novel_best - known_best,
            features=features,
        )

    def health(self) -> dict[str, Any]:
        return {"warmed_up": self.begun}

    # -- memory -------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """While the buffer fills it is not part of the state: ``seen`` is 0 and the stream is
        read again from its start."""
        arrays = {"anchors": self.task.anchors.astype(np.float32)}
        if self.begun:
            arrays.update({f"learned/{k}": v for k, v in self.learned_arrays().items()})
        values = {
            **self.described(self._seen if self.begun else 0),
            "phase": "stream" if self.begun else "warm-up",
        }
        return State(arrays, values)

    def load_state_dict(self, state: State) -> None:
        self.check_described(state.values)
        self._seen = state.values["seen"]
        self.begun = state.values["phase"] == "stream"
        if self.begun:
            learned = {
                key.removeprefix("learned/"): np.array(array)
                for key, array in state.arrays.items()
                if key.startswith("learned/")
            }
            self.load_learned(learned)
