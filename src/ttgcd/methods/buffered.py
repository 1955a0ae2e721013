"""Methods that look at the early stream before they begin."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task, features_of
from ttgcd.methods.zero_shot import text_says, zero_shot_rows
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch


@dataclass(kw_only=True)
class Buffered(Method):
    """Answers the first ``warmup`` samples provisionally by zero-shot, then begins, revises those
    answers, and from there on answers every batch as it comes.

    The buffer ends with the batch in which ``warmup`` is reached, or with the stream.
    """

    #: Whether learning needs the images and not only their features.
    keeps_images: ClassVar[bool] = False
    #: Whether the buffer ends within a batch, at exactly ``warmup`` samples.
    exact: ClassVar[bool] = False

    warmup: int = 1024

    def __post_init__(self) -> None:
        if self.warmup < 1:
            raise InputError(f"warmup must be 1 or more, got {self.warmup}")

    @abstractmethod
    def begin(self, buffer: list[Batch]) -> Any:
        """Set up the categories from the buffered batches, which carry features."""

    @abstractmethod
    def answer(self, start: int, features: np.ndarray) -> Answer:
        """The answer of the present state; changes nothing."""

    @abstractmethod
    def learn(self, batch: Batch, warming: bool = False) -> Answer:
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
        self._buffer: list[Batch] = []

    @property
    def wants_images(self) -> bool:
        return self.keeps_images and self.task.vlm is not None

    def observe(self, batch: Batch) -> Answer:
        if self.begun:
            return self._go_on(batch)
        if self.seen >= self.warmup:  # a state with a full buffer was loaded
            return Answer.concat([self.end_warmup(), self._go_on(batch)])
        filling, rest = batch.split(
            min(len(batch), self.warmup - self.seen) if self.exact else len(batch)
        )
        kept = filling if self.wants_images else replace(filling, images=None)
        self._buffer.append(kept)
        self.seen += len(filling)
        if self.seen < self.warmup:
            return zero_shot_rows(self.task, batch.start, features_of(filling), final=False)
        revised = self.end_warmup()
        if not len(rest):
            return revised
        return Answer.concat([revised, self._go_on(self.after_warmup(rest))])

    def _go_on(self, batch: Batch) -> Answer:
        self.seen += len(batch)
        return self.learn(batch)

    def finish(self) -> Answer:
        return self.end_warmup() if self._buffer else Answer.empty()

    def predict(self, batch: Batch) -> Answer:
        if not self.begun:
            return zero_shot_rows(self.task, batch.start, features_of(batch), final=False)
        return self.answer(batch.start, features_of(batch))

    def end_warmup(self) -> Answer:
        """Begin, and go through the buffer again."""
        buffer = self._buffer
        self.begin(buffer)
        self.begun, self._buffer = True, []
        return Answer.concat([self.learn(batch, warming=True) for batch in buffer])

    def after_warmup(self, rest: Batch) -> Batch:
        """The part of a batch behind the buffer, as it is to be observed."""
        return rest

    def rows(
        self,
        start: int,
        features: np.ndarray,
        cosines: np.ndarray,
        text: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Answer:
        """Nearest of the categories 0..K-1 (known) and K.. (novel) for given cosines (Eq. 9); the
        text label where every category is closed (-inf). ``text`` are labels and margins, where
        the caller has them already."""
        n_known = self.task.n_known
        labels, margins = text or text_says(self.task, features)
        category = cosines.argmax(axis=1)
        score = cosines[np.arange(len(cosines)), category]
        nothing = ~np.isfinite(score)
        if nothing.any():
            category[nothing], score[nothing] = labels[nothing], 0.0
        known_best = cosines[:, :n_known].max(axis=1, initial=-1.0)
        novel_best = cosines[:, n_known:].max(axis=1, initial=-1.0)
        return Answer.make(
            start, category, score, margins, novelty=novel_best - known_best, features=features
        )

    def health(self) -> dict[str, Any]:
        return {"warmed_up": self.begun}

    # -- memory -------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """While the buffer fills, ``seen`` is 0 and the stream is read again from its start; for
        a caller who cannot do that the buffer is part of the state."""
        arrays = {"anchors": self.task.anchors.astype(np.float32)}
        seen = self.seen
        if self.begun:
            arrays.update({f"learned/{k}": v for k, v in self.learned_arrays().items()})
        elif self.caller.replays:
            seen = 0
        else:
            arrays.update(packed(self._buffer))
        values = {**self.described(seen), "phase": "stream" if self.begun else "warm-up"}
        return State(arrays, values)

    def load_state_dict(self, state: State) -> None:
        self.check_described(state.values)
        self.begun = state.values["phase"] == "stream"
        if self.begun:
            learned = {
                key.removeprefix("learned/"): np.array(array)
                for key, array in state.arrays.items()
                if key.startswith("learned/")
            }
            self.load_learned(learned)
        else:
            self._buffer = unpacked(state.arrays)


def packed(buffer: list[Batch]) -> dict[str, np.ndarray]:
    """A buffer as plain arrays, for a state."""
    if not buffer:
        return {}
    arrays = {
        "buffer/lengths": np.array([len(batch) for batch in buffer]),
        "buffer/features": np.concatenate([features_of(batch) for batch in buffer]),
    }
    images = [batch.images.cpu().numpy() for batch in buffer if batch.images is not None]
    if images:
        arrays["buffer/images"] = np.concatenate(images)
    return arrays


def unpacked(arrays: dict[str, np.ndarray]) -> list[Batch]:
    """Batches of a buffer; names and positions are the caller's and stay with it."""
    if "buffer/lengths" not in arrays:
        return []
    import torch

    ends = np.cumsum(arrays["buffer/lengths"])
    images = arrays.get("buffer/images")
    return [
        Batch(
            ids=("",) * int(end - begin),
            start=int(begin),
            positions=tuple(range(int(begin), int(end))),
            next_position=int(end),
            images=None if images is None else torch.from_numpy(np.array(images[begin:end])),
            features=np.array(arrays["buffer/features"][begin:end]),
        )
        for begin, end in zip(np.concatenate([[0], ends[:-1]]), ends)
    ]
