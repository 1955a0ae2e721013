"""A trained classifier over known and novel prototypes on a frozen encoder."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Task, features_of
from ttgcd.methods.buffered import Buffered
from ttgcd.methods.optimiser_state import load_optimiser_arrays, optimiser_arrays
from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.clusters import kmeans
from ttgcd.prototypes.mixture import known_mask

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


@dataclass(kw_only=True)
class PrototypeClassifier(Buffered):
    """Known rows begin at the text anchors, novel rows at the k-means centres (k = L) of the
    buffer's novel samples, or of the whole buffer if fewer than L are novel. All rows are trained
    by SGD with momentum 0.9 and put back on the unit sphere after each step. One step a batch; an
    answer is the argmax before it. What is trained lies on the encoder's device."""

    lr: float = 1e-2
    temperature: float = 0.1
    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.lr >= 0 or not self.temperature > 0:
            raise InputError(
                "lr must be 0 or more and temperature above 0, got "
                f"{self.lr} and {self.temperature}"
            )

    @abstractmethod
    def loss(self, batch: Batch, known: torch.Tensor, warming: bool) -> torch.Tensor:
        """The objective on a batch; ``known`` marks what the mixture calls known."""

    def make_optimiser(self) -> torch.optim.Optimizer:
        return torch.optim.SGD([self.bank], lr=self.lr, momentum=self.momentum)

    # -- the stream ---------------------------------------------------------------------------

    def start(self, task: Task) -> None:
        super().start(task)
        self.bank = torch.nn.Parameter(torch.zeros(0, task.anchors.shape[1]))
        self.skipped = 0

    def begin(self, buffer: list[Batch]) -> None:
        parts = [features_of(batch) for batch in buffer]
        features = np.concatenate(parts)
        novel = features[~np.concatenate([self._known(part) for part in parts])]
        if len(novel) < self.n_novel:
            novel = features
        centres = normalise(kmeans(novel, self.n_novel, self.task.seed).centres)
        self._set_bank(np.concatenate([self.task.anchors.astype(np.float32), centres]))

    def _set_bank(self, rows: np.ndarray) -> None:
        self.bank = torch.nn.Parameter(self.here(rows.astype(np.float32)))
        self._optimiser = self.make_optimiser()

    def here(self, array: np.ndarray) -> torch.Tensor:
        """An array as a tensor on the encoder's device."""
        device = "cpu" if self.task.vlm is None else self.task.vlm.device
        return torch.from_numpy(array).to(device)

    def learn(self, batch: Batch, warming: bool = False) -> Answer:
        features = features_of(batch)
        answer = self.answer(batch.start, features)
        known = self.here(self._known(features))
        with torch.enable_grad():
            loss = self.loss(batch, known, warming)
            self._optimiser.zero_grad(set_to_none=True)
            loss.backward()
        gradient = self.bank.grad
        if torch.isfinite(loss) and gradient is not None and torch.isfinite(gradient).all():
            self._optimiser.step()
            self.after_step()
        else:
            self.skipped += 1
        return answer

    def after_step(self) -> None:
        with torch.no_grad():
            self.bank.copy_(F.normalize(self.bank, dim=1))

    def answer(self, start: int, features: np.ndarray) -> Answer:
        return self.rows(start, features, features @ self.bank.detach().cpu().numpy().T)

    def _known(self, features: np.ndarray) -> np.ndarray:
        return known_mask((features @ self.task.anchors.T).max(axis=1), self.task.seed)

    def pseudo_labels(self, features: np.ndarray) -> torch.Tensor:
        """The zero-shot label of every sample."""
        return self.here((features @ self.task.anchors.T).argmax(axis=1))

    def prototypes(self) -> np.ndarray:
        rows = np.zeros((self.task.n_known + self.n_novel, self.task.anchors.shape[1]), np.float32)
        rows[: len(self.bank)] = self.bank.detach().cpu().numpy()
        return rows

    def health(self) -> dict[str, Any]:
        return {
            **super().health(),
            "novel_prototypes": max(0, len(self.bank) - self.task.n_known),
            "skipped_steps": {"not_finite": self.skipped},
        }

    # -- memory -------------------------------------------------------------------------------

    def learned_arrays(self) -> dict[str, np.ndarray]:
        return {
            "bank": self.bank.detach().cpu().numpy().copy(),
            "skipped": np.array(self.skipped),
            **optimiser_arrays(self._optimiser),
        }

    def load_learned(self, arrays: dict[str, np.ndarray]) -> None:
        self._set_bank(arrays["bank"])
        self.skipped = int(arrays["skipped"])
        load_optimiser_arrays(self._optimiser, arrays)
