"""OSTTA++: entropy of the known samples whose confidence did not fall, opposite for novel ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ttgcd.methods.adapting import Forward, OneLoss, Split
from ttgcd.methods.losses import entropies, entropy_of_mean


def confidence_kept(forward: Forward, frozen: Forward) -> torch.Tensor:
    """p_n(c_n) >= p0_n(c_n), with c_n the class that the pretrained model gives.

    A hair of tolerance: on the first batch both models are the same, up to rounding.
    """
    before, label = frozen.logits.softmax(dim=1).max(dim=1)
    now = forward.logits.detach().softmax(dim=1).gather(1, label[:, None])[:, 0]
    return now >= before - 1e-5


@dataclass(kw_only=True)
class Ostta(OneLoss):
    """Adam, lr 1e-3, one step a batch, against a frozen copy of the model."""

    name: ClassVar[str] = "ostta++"
    uses_frozen: ClassVar[bool] = True

    alpha_div: float = 0.2
    alpha_ood: float = 0.1

    def loss(self, forward: Forward, split: Split, frozen: Forward | None) -> torch.Tensor | None:
        """mean H over the kept known samples - alpha_ood mean H over the novel ones
        - alpha_div H(mean p) over the batch."""
        assert frozen is not None
        if not split.known.any():
            return None
        values = entropies(forward.logits)
        loss = -self.alpha_div * entropy_of_mean(forward.logits)
        kept = split.known & confidence_kept(forward, frozen)
        if kept.any():
            loss = loss + values[kept].mean()
        if (~split.known).any():
            loss = loss - self.alpha_ood * values[~split.known].mean()
        return loss
