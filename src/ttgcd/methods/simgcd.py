"""SimGCD++: cross-view self-distillation of a prototype classifier on a frozen encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.methods.base import encode_images
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
    total = torch.zeros((), dtype=student[0].dtype)
    for mine, others in ((student[0], teacher[1]), (student[1], teacher[0])):
        target = (others.detach() / teacher_temperature).softmax(dim=1)
        total = total - (target * (mine / student_temperature).log_softmax(dim=1)).sum(1).mean()
    return total / 2


def info_nce(first: torch.Tensor, second: torch.Tensor, temperature: float) -> torch.Tensor:
    """Contrast of unit projections (n, p) of two views: each picks its partner among all others."""
    n = len(first)
    both = torch.cat([first, second])
    logits = both @ both.T / temperature
    itself = torch.eye(2 * n, dtype=torch.bool)
    logits = logits.masked_fill(itself, -torch.inf)
    partner = torch.arange(2 * n).roll(n)
    return F.cross_entropy(logits, partner)


@dataclass(kw_only=True)
class SimGcd(PrototypeClassifier):
    """SGD, lr 1e-2, momentum 0.9, weight decay 5e-5 (not on biases).

    The teacher is a moving average of the student's prototypes (``ema``). A stream of embeddings
    has no views: the same feature then serves as both. The encoder is frozen, so the contrastive
    term trains the projection head only and does not touch the answers.
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
    projection: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.ema <= 1:
            raise InputError(f"ema must lie in [0, 1], got {self.ema}")
        if self.hidden < 1 or self.projection < 1:
            raise InputError("hidden and projection must be 1 or more")

    def make_optimiser(self) -> torch.optim.Optimizer:
        self.teacher = self.bank.detach().clone()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.task.seed)
            self.head = nn.Sequential(
                nn.Linear(self.bank.shape[1], self.hidden),
                nn.GELU(),
                nn.Linear(self.hidden, self.hidden),
                nn.GELU(),
                nn.Linear(self.hidden, self.projection),
            )
        biases = [p for p in self.head.parameters() if p.ndim == 1]
        weights = [self.bank, *(p for p in self.head.parameters() if p.ndim > 1)]
        groups = [
            {"params": weights, "weight_decay": self.weight_decay},
            {"params": biases, "weight_decay": 0.0},
        ]
        return torch.optim.SGD(groups, lr=self.lr, momentum=self.momentum)

    def loss(
        self, batch: Batch, features: np.ndarray, known: torch.Tensor, warming: bool
    ) -> torch.Tensor:
        """w_cons distillation + w_contr (contrast + cross-entropy with the zero-shot labels of the
        known samples) - w_div H(mean p)."""
        views = [
            torch.from_numpy(view).to(self.bank.dtype) for view in self._views(batch, features)
        ]
        unit = F.normalize(self.bank, dim=1)
        student = (views[0] @ unit.T, views[1] @ unit.T)
        teacher = (views[0] @ self.teacher.T, views[1] @ self.teacher.T)
        cooler = self.warmup_teacher_temperature if warming else self.teacher_temperature
        projected = [F.normalize(self.head(view), dim=1) for view in views]
        logits = torch.cat(student) / self.temperature
        guided = info_nce(projected[0], projected[1], self.contrast_temperature)
        if known.any():
            labels = self.pseudo_labels(features)[known]
            guided = guided + F.cross_entropy(logits[known.repeat(2)], labels.repeat(2))
        return (
            self.w_cons * distillation(student, teacher, self.temperature, cooler)
            + self.w_contr * guided
            - self.w_div * entropy_of_mean(logits)
        )

    def after_step(self) -> None:
        super().after_step()
        mixed = self.ema * self.teacher + (1.0 - self.ema) * self.bank.detach()
        self.teacher = F.normalize(mixed, dim=1)

    def _views(self, batch: Batch, features: np.ndarray) -> list[np.ndarray]:
        """Features of two random views. The draw depends only on the seed and the place in the
        stream, so a run that goes on later draws the same."""
        if batch.images is None:
            return [features, features]
        return [
            encode_images(
                self.task,
                random_view(
                    batch.images, np.random.default_rng([self.task.seed, batch.start, view])
                ),
            )
            for view in (0, 1)
        ]

    def learned_arrays(self) -> dict[str, np.ndarray]:
        head = {f"head/{key}": v.numpy().copy() for key, v in self.head.state_dict().items()}
        return {**super().learned_arrays(), **head, "teacher": self.teacher.numpy().copy()}

    def load_learned(self, arrays: dict[str, np.ndarray]) -> None:
        super().load_learned(arrays)
        self.teacher = torch.from_numpy(arrays["teacher"])
        self.head.load_state_dict(
            {
                key.removeprefix("head/"): torch.from_numpy(array)
                for key, array in arrays.items()
                if key.startswith("head/")
            }
        )
