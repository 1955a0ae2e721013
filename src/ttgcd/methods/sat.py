"""SAT++: self-labels by optimal transport to the text anchors, distilled across templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.methods.adapting import Forward, Split, TestTimeAdaptation
from ttgcd.methods.base import Task

TEMPLATES = (
    "itap of a {}.",
    "a bad photo of the {}.",
    "a origami {}.",
    "a photo of the large {}.",
    "a {} in a video game.",
    "art of the {}.",
    "a photo of the small {}.",
    "a photo of {}.",
)


def sinkhorn_codes(scores: torch.Tensor, epsilon: float, iterations: int) -> torch.Tensor:
    """Codes Q (n, K) for scores (n, K): exp(scores / epsilon) scaled in turn to equal class sums
    1/K and equal sample sums 1/n, at the end to rows that sum to one. In log space."""
    n, k = scores.shape
    logs = (scores / epsilon).log_softmax(dim=1)
    for _ in range(iterations):
        logs = logs - logs.logsumexp(dim=0, keepdim=True) - float(np.log(k))
        logs = logs - logs.logsumexp(dim=1, keepdim=True) - float(np.log(n))
    return logs.softmax(dim=1)


@dataclass(kw_only=True)
class Sat(TestTimeAdaptation):
    """AdamW, lr 1e-4; one step a template, eight a batch; answers after the steps.

    The batch is split by the task's own anchors; labels and answers use the eight templates.
    ``steps`` repeats the round over the templates.
    """

    name: ClassVar[str] = "sat++"
    optimiser: ClassVar[Literal["adam", "adamw"]] = "adamw"
    splits_with_gradient: ClassVar[bool] = False

    lr: float = 1e-4
    weight_decay: float = 1e-2
    temperature: float = 0.01
    epsilon: float = 0.7
    iterations: int = 3
    multi_template: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.temperature > 0 or not self.epsilon > 0:
            raise InputError(
                "temperature and epsilon must be above 0, got "
                f"{self.temperature} and {self.epsilon}"
            )
        if self.iterations < 0:
            raise InputError(f"iterations must be 0 or more, got {self.iterations}")

    def start(self, task: Task) -> None:
        super().start(task)
        assert task.vlm is not None
        templates = TEMPLATES if self.multi_template else task.templates[:1]
        with torch.no_grad():
            self._by_template = [
                task.vlm.encode_texts([template.replace("{}", name) for name in task.known])
                for template in templates
            ]
        self._averaged = F.normalize(torch.stack(self._by_template).mean(dim=0), dim=-1)

    def adapt(
        self, embedded: torch.Tensor, first: Forward, split: Split, frozen: Forward | None
    ) -> Forward:
        """Only the known samples go through the model again, once a template."""
        mine = embedded[split.known]
        for _ in range(self.steps):
            for anchors in self._by_template:
                if not len(mine):
                    self.descend(None)
                    continue
                features = self.model.encode_embedded(mine)
                self.descend(self.distillation(features, anchors, self._averaged))
        with torch.no_grad():
            return self.answering(self.forward(embedded))

    def answering(self, forward: Forward) -> Forward:
        return Forward.of(forward.raw, self._averaged, self.task.logit_scale)

    def distillation(
        self, features: torch.Tensor, anchors: torch.Tensor, head: torch.Tensor
    ) -> torch.Tensor:
        """Cross-entropy of the averaged head's prediction with the template's codes, which are
        labels: no gradient goes through them."""
        with torch.no_grad():
            codes = sinkhorn_codes(
                features @ anchors.T / self.temperature, self.epsilon, self.iterations
            )
        logs = (features @ head.T / self.temperature).log_softmax(dim=1)
        return -(codes * logs).sum(dim=1).mean()
