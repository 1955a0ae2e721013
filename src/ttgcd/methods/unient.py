"""UniEnt++: OSTTA++ with the entropy of novel samples capped; hard sets or soft weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from ttgcd.errors import InputError
from ttgcd.methods.adapting import Forward, OneLoss, Split
from ttgcd.methods.losses import entropies, entropy_of_mean
from ttgcd.methods.ostta import confidence_kept


@dataclass(kw_only=True)
class UniEnt(OneLoss):
    """Adam, lr 1e-3, one step a batch, against a frozen copy of the model.

    ``clamp`` caps the entropy of a novel sample at that share of log K, so that a sample which is
    nearly uniform already pulls no more. ``partition="hard"`` puts the known term on the samples
    that the mixture calls known and the novel term on the others, as the paper's App. A says of
    all methods; "soft" weighs every sample by the mixture's posteriors, as the original UniEnt+.
    """

    name: ClassVar[str] = "unient++"
    uses_frozen: ClassVar[bool] = True

    alpha_div: float = 0.1
    alpha_ood: float = 0.05
    clamp: float = 0.9
    partition: Literal["hard", "soft"] = "hard"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.clamp <= 1:
            raise InputError(f"clamp must lie in [0, 1], got {self.clamp}")
        if self.partition not in ("hard", "soft"):
            raise InputError(f"partition must be 'hard' or 'soft', got {self.partition!r}")

    def loss(self, forward: Forward, split: Split, frozen: Forward | None) -> torch.Tensor | None:
        """hard: mean H over the kept known samples - alpha_ood mean min(H, clamp log K) over the
        novel ones - alpha_div H(mean p); soft: the same sums over the whole batch, each sample
        weighted by pi_known or pi_novel."""
        assert frozen is not None
        if not split.known.any():
            return None
        values = entropies(forward.logits)
        capped = values.clamp(max=self.clamp * math.log(forward.logits.shape[1]))
        loss = -self.alpha_div * entropy_of_mean(forward.logits)
        kept = confidence_kept(forward, frozen)
        if self.partition == "soft":
            loss = loss - self.alpha_ood * ((1.0 - split.posterior) * capped).mean()
            values = split.posterior * values
        else:
            kept = kept & split.known
            if (~split.known).any():
                loss = loss - self.alpha_ood * capped[~split.known].mean()
        if kept.any():
            loss = loss + values[kept].mean()
        return loss
