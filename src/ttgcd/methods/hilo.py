"""HiLo++: a joint prototype bank, trained by the entropy of its own answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch.nn import functional as F

from ttgcd.methods.base import features_of
from ttgcd.methods.classifier import PrototypeClassifier
from ttgcd.methods.losses import entropies

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


@dataclass(kw_only=True)
class HiLo(PrototypeClassifier):
    """SGD, lr 1e-2, momentum 0.9, temperature 0.1; only the bank is trained."""

    name: ClassVar[str] = "hilo++"

    w_sem: float = 0.5

    def loss(self, batch: Batch, known: torch.Tensor, warming: bool) -> torch.Tensor:
        """w_sem mean H(p) + cross-entropy with the zero-shot labels of the known samples."""
        features = features_of(batch)
        unit = F.normalize(self.bank, dim=1)
        logits = self.here(features).to(unit.dtype) @ unit.T / self.temperature
        loss = self.w_sem * entropies(logits).mean()
        if known.any():
            labels = self.pseudo_labels(features)
            loss = loss + F.cross_entropy(logits[known], labels[known])
        return loss
