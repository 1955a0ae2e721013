"""Training-free methods that open a new category when a sample is far from all others."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import features_of
from ttgcd.methods.buffered import Buffered
from ttgcd.methods.zero_shot import zero_shot_rows
from ttgcd.prototypes.bank import PrototypeBank
from ttgcd.prototypes.mixture import mixture_threshold

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


@dataclass(kw_only=True)
class Growing(Buffered):
    """Known prototypes are the margin-weighted means of the buffer (Eq. 5): the originals take
    means of labelled data, which this task has not. A class without support keeps no prototype
    and is never answered.

    ``threshold`` is the cosine below which a sample opens a category; None takes it from a mixture
    over the buffer's best cosines. ``open_ended`` lifts the limit of L novel categories, so ids
    may go beyond K + L - 1; with the limit a far sample joins its nearest once L are open.
    """

    threshold: float | None = None
    open_ended: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InputError(f"threshold is a cosine in [-1, 1] or None, got {self.threshold}")

    @property
    def wants_count(self) -> bool:
        return super().wants_count and not self.open_ended

    @abstractmethod
    def place(self, feature: np.ndarray) -> int | None:
        """The category of a sample that is far from every prototype, perhaps one opened for it;
        None leaves it to the nearest."""

    @abstractmethod
    def update(self, features: np.ndarray, categories: np.ndarray) -> None:
        """Move prototypes after a batch."""

    # -- the stream ---------------------------------------------------------------------------

    def begin(self, buffer: list[Batch]) -> None:
        features = np.concatenate([features_of(batch) for batch in buffer])
        text = zero_shot_rows(self.task, 0, features)
        bank = PrototypeBank.from_buffer(
            features, text.category, text.margin, self.task.n_known, evidence_min=0.0
        )
        self.centres = bank.known
        self.cut = self.threshold
        if self.cut is None:
            best = self.cosines(features).max(axis=1)
            # Without any known prototype every sample is far. The hair below keeps the lowest
            # known sample itself on the known side, whatever the rounding.
            any_known = np.isfinite(best).all()
            self.cut = mixture_threshold(best, self.task.seed) - 1e-6 if any_known else 1.0

    def learn(self, batch: Batch, warming: bool = False) -> Answer:
        assert self.cut is not None
        features = features_of(batch)
        text = zero_shot_rows(self.task, batch.start, features)
        categories = text.category.copy()
        for row, feature in enumerate(features):
            cosines = self.cosines(feature[None])[0]
            placed = self.place(feature) if cosines.max() < self.cut else None
            if placed is not None:
                categories[row] = placed
            elif np.isfinite(cosines).any():
                categories[row] = cosines.argmax()
        answer = self.answer(batch.start, features)
        answer.category[:] = categories
        answer.score[:] = np.einsum("nd,nd->n", features, self.centres[categories])
        self.update(features, categories)
        return answer

    def room(self) -> bool:
        """Whether one more category may be opened."""
        return self.open_ended or len(self.centres) < self.task.n_known + self.n_novel

    def open(self, feature: np.ndarray) -> int:
        """Open a category at ``feature`` and return its id."""
        self.centres = np.concatenate([self.centres, feature[None].astype(np.float32)])
        return len(self.centres) - 1

    def cosines(self, features: np.ndarray) -> np.ndarray:
        cosines = features @ self.centres.T
        cosines[:, ~self.centres.any(axis=1)] = -np.inf
        return cosines

    def answer(self, start: int, features: np.ndarray) -> Answer:
        if not self.centres.any():
            return zero_shot_rows(self.task, start, features)
        return self.rows(start, features, self.cosines(features))

    def prototypes(self) -> np.ndarray:
        total = self.task.n_known + self.n_novel
        if not self.begun:
            return np.zeros((total, self.task.anchors.shape[1]), np.float32)
        missing = max(0, total - len(self.centres))
        return np.concatenate(
            [self.centres, np.zeros((missing, self.centres.shape[1]), np.float32)]
        )

    def health(self) -> dict[str, Any]:
        if not self.begun:
            return super().health()
        return {
            **super().health(),
            "threshold": self.cut,
            "novel_opened": len(self.centres) - self.task.n_known,
        }

    # -- memory -------------------------------------------------------------------------------

    def learned_arrays(self) -> dict[str, np.ndarray]:
        return {"centres": self.centres.copy(), "cut": np.array(self.cut, np.float64)}

    def load_learned(self, arrays: dict[str, np.ndarray]) -> None:
        self.centres = arrays["centres"]
        self.cut = float(arrays["cut"])
