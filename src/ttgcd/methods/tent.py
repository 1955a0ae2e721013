"""TENT++: minimise the entropy of the known samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ttgcd.methods.adapting import Forward, OneLoss, Split
from ttgcd.methods.losses import entropies


@dataclass(kw_only=True)
class Tent(OneLoss):
    """Adam, lr 1e-3, one step a batch."""

    name: ClassVar[str] = "tent++"

    def loss(self, forward: Forward, split: Split, frozen: Forward | None) -> torch.Tensor | None:
        """mean H(p_n) over the known samples."""
        if not split.known.any():
            return None
        return entropies(forward.logits[split.known]).mean()
