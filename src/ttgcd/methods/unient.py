"""UniEnt++: OSTTA++ with the mixture's posteriors as weights and a capped novel entropy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from ttgcd.errors import InputError
from ttgcd.methods.losses import entropies, entropy_of_mean
from ttgcd.methods.ostta import confidence_kept
from ttgcd.methods.skeleton import Forward, OneLoss, Split


@dataclass(kw_only=True)
class UniEnt(OneLoss):
    """Adam, lr 1e-3, one step a batch, against a frozen copy of the model.

    ``clamp`` caps the entropy of a novel sample at that share of log K, so that a sample which is
    nearly uniform already pulls no more.
    """

    name: ClassVar[str] = "unient++"
    uses_frozen: ClassVar[bool] = True

    alpha_div: float = 0.1
    alpha_ood: float = 0.05
    clamp: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.clamp <= 1:
            raise InputError(f"clamp must lie in [0, 1], got {self.clamp}")

    def loss(self, forward: Forward, split: Split, frozen: Forward | None) -> torch.Tensor | None:
        """mean over the kept of pi_known H - alpha_ood mean of pi_novel min(H, clamp log K)
        - alpha_div H(mean p)."""
        assert frozen is not None
        if not split.known.any():
            return None
        values = entropies(forward.logits)
        capped = values.clamp(max=self.clamp * math.log(forward.logits.shape[1]))
        loss = -self.alpha_ood * ((1.0 - split.posterior) * capped).mean()
        loss = loss - self.alpha_div * entropy_of_mean(forward.logits)
        kept = confidence_kept(forward, frozen)
        if kept.any():
            loss = loss + (split.posterior * values)[kept].mean()
        return loss
