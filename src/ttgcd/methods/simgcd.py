"""SimGCD++: cross-view self-distillation of a projection head and prototypes, encoder frozen."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import features_of
from ttgcd.methods.classifier import PrototypeClassifier
from ttgcd.methods.losses import entropy_of_mean
from ttgcd.methods.views import random_view

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


def distillation(
    student: tuple[torch.Tensor, torch.Tensor],
    teacher: tuple[torch.Tensor, torch.Tensor],
    student_temperature: float,
    teacher_temperature: float,
) -> torch.Tensor:
    """Cross-entropy of each view's student with the other view's teacher, cosines (n, C)."""
    total = torch.zeros((), dtype=student[0].dtype, device=student[0].device)
    for mine, others in ((student[0], teacher[1]), (student[1], teacher[0])):
        target = (others.detach() / teacher_temperature).softmax(dim=1)
        total = total - (target * (mine / student_temperature).log_softmax(dim=1)).sum(1).mean()
    return total / 2


def info_nce(first: torch.Tensor, second: torch.Tensor, temperature: float) -> torch.Tensor:
    """Contrast of unit projections (n, p) of two views: each picks its partner among all others."""
    n = len(first)
    both = torch.cat([first, second])
    logits = both @ both.T / temperature
    itself = torch.eye(2 * n, dtype=torch.bool, device=both.device)
    logits = logits.masked_fill(itself, -torch.inf)
    partner = torch.arange(2 * n, device=both.device).roll(n)
    return F.cross_entropy(logits, partner)


class Head(nn.Module):
    """Unit projections (n, d): the feature plus what three layers add to it.

    The last layer begins at zero, so the head begins as the identity. Text anchors and the k-means
    centres of features, where the prototypes begin, have their meaning only there.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.added = nn.Sequential(
            nn.Linear(dim, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, dim),
        )
        for parameter in self.added[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return F.normalize(features + self.added(features), dim=1)


@dataclass(kw_only=True)
class SimGcd(PrototypeClassifier):
    """A student head and the novel prototypes learn, by SGD with lr 1e-2, momentum 0.9 and weight
    decay 5e-5 (not on biases); the known prototypes stay at the text anchors.

    An answer is the prototype nearest to the head's projection of the sample. The teacher is a
    moving average of the student, head and prototypes (``ema``). A stream of embeddings has no
    views: the same feature then serves as both.
    """

    name: ClassVar[str] = "simgcd++"
    keeps_images: ClassVar[bool] = True

    ema: float = 0.999
    w_cons: float = 0.5
    w_contr: float = 1.5
    w_div: float = 0.01
    teacher_temperature: float = 0.04
    warmup_teacher_temperature: float = 0.07
    contrast_temperature: float = 1.0
    weight_decay: float = 5e-5
    hidden: int = 2048

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.ema <= 1:
            raise InputError(f"ema must lie in [0, 1], got {self.ema}")
        if self.hidden < 1:
            raise InputError(f"hidden must be 1 or more, got {self.hidden}")

    def make_optimiser(self) -> torch.optim.Optimizer:
        self.teacher = self.bank.detach().clone()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.task.seed)
            # Drawn on the CPU: the same layers on every device.
            self.head = Head(self.bank.shape[1], self.hidden).to(self.bank.device)
        self.teacher_head = deepcopy(self.head).requires_grad_(False)
        biases = [p for p in self.head.parameters() if p.ndim == 1]
        weights = [self.bank, *(p for p in self.head.parameters() if p.ndim > 1)]
        groups = [
            {"params": weights, "weight_decay": self.weight_decay},
            {"params": biases, "weight_decay": 0.0},
        ]
        return torch.optim.SGD(groups, lr=self.lr, momentum=self.momentum)

    def loss(self, batch: Batch, known: torch.Tensor, warming: bool) -> torch.Tensor:
        """w_cons distillation + w_contr (contrast + cross-entropy with the zero-shot labels of the
        known samples) - w_div H(mean p)."""
        views = [self.here(view).to(self.bank.dtype) for view in self._views(batch)]
        n_known = self.task.n_known
        # The anchors are given, not learned: no gradient reaches the known rows.
        unit = F.normalize(torch.cat([self.bank[:n_known].detach(), self.bank[n_known:]]), dim=1)
        projected = [self.head(view) for view in views]
        student = (projected[0] @ unit.T, projected[1] @ unit.T)
        with torch.no_grad():
            taught = [self.teacher_head(view) @ self.teacher.T for view in views]
        cooler = self.warmup_teacher_temperature if warming else self.teacher_temperature
        logits = torch.cat(student) / self.temperature
        guided = info_nce(projected[0], projected[1], self.contrast_temperature)
        if known.any():
            labels = self.pseudo_labels(features_of(batch))[known]
            guided = guided + F.cross_entropy(logits[known.repeat(2)], labels.repeat(2))
        teacher = (taught[0], taught[1])
        return (
            self.w_cons * distillation(student, teacher, self.temperature, cooler)
            + self.w_contr * guided
            - self.w_div * entropy_of_mean(logits)
        )

    def after_step(self) -> None:
        super().after_step()
        mixed = self.ema * self.teacher + (1.0 - self.ema) * self.bank.detach()
        self.teacher = F.normalize(mixed, dim=1)
        with torch.no_grad():
            for old, new in zip(self.teacher_head.parameters(), self.head.parameters()):
                old.mul_(self.ema).add_(new, alpha=1.0 - self.ema)

    def answer(self, start: int, features: np.ndarray) -> Answer:
        with torch.no_grad():
            cosines = self.head(self.here(np.asarray(features, np.float32))) @ self.bank.T
        return self.rows(start, features, cosines.cpu().numpy())

    def _views(self, batch: Batch) -> list[np.ndarray]:
        """Features of two random views. The draw depends only on the seed and the place in the
        stream, so a run that goes on later draws the same."""
        if batch.images is None:
            return [features_of(batch)] * 2
        draws = (np.random.default_rng([self.task.seed, batch.start, view]) for view in (0, 1))
        encode = self.task.encoder()
        return [encode(random_view(batch.images, rng)) for rng in draws]

    def learned_arrays(self) -> dict[str, np.ndarray]:
        heads = {"head/": self.head, "teacher_head/": self.teacher_head}
        stored = {
            prefix + key: value.cpu().numpy().copy()
            for prefix, head in heads.items()
            for key, value in head.state_dict().items()
        }
        return {**super().learned_arrays(), **stored, "teacher": self.teacher.cpu().numpy().copy()}

    def load_learned(self, arrays: dict[str, np.ndarray]) -> None:
        super().load_learned(arrays)
        self.teacher = self.here(arrays["teacher"])
        for prefix, head in (("head/", self.head), ("teacher_head/", self.teacher_head)):
            head.load_state_dict(
                {
                    key.removeprefix(prefix): torch.from_numpy(array)
                    for key, array in arrays.items()
                    if key.startswith(prefix)
                }
            )
