"""BATCLIP++: entropy, image-to-text alignment and separation of class means, in both towers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch.nn import functional as F

from ttgcd.methods.adapting import Forward, OneLoss, Split
from ttgcd.methods.losses import entropies
from ttgcd.vlm.base import Tower


@dataclass(kw_only=True)
class BatClip(OneLoss):
    """AdamW, lr 1e-3, one step a batch; text anchors are encoded anew for every batch."""

    name: ClassVar[str] = "batclip++"
    trains: ClassVar[str] = "image and text LayerNorm"
    towers: ClassVar[tuple[Tower, ...]] = ("image", "text")
    optimiser: ClassVar[Literal["adam", "adamw"]] = "adamw"

    def text_anchors(self) -> torch.Tensor:
        """The mean of the unit prompt features over the templates, normalised again."""
        parts = [
            self.model.encode_texts([template.replace("{}", name) for name in self.task.known])
            for template in self.task.templates
        ]
        return F.normalize(torch.stack(parts).mean(dim=0), dim=-1)

    def loss(self, forward: Forward, split: Split, frozen: Forward | None) -> torch.Tensor | None:
        """mean H(p) - alignment - separation over the known samples, all weights one.

        With m_c the mean of the un-normalised features that are labelled c: alignment is the mean
        of m_c . z_c, separation the *sum* of 1 - cos(m_c, m_c') over ordered pairs, which outgrows
        the other terms as the number of classes in a batch rises. The original has it so.
        """
        known = split.known
        if not known.any():
            return None
        logits, raw = forward.logits[known], forward.raw[known]
        labels = logits.argmax(dim=1)
        present = labels.unique()
        means = torch.stack([raw[labels == label].mean(dim=0) for label in present])
        alignment = (means * forward.anchors[present]).sum(dim=1).mean()
        unit = F.normalize(means, dim=1)
        apart = ~torch.eye(len(present), dtype=torch.bool, device=unit.device)
        separation = (1.0 - unit @ unit.T)[apart].sum()
        return entropies(logits).mean() - alignment - separation
