"""Entropies that several objectives share, from logits (n, K)."""

from __future__ import annotations

import math

import torch


def entropies(logits: torch.Tensor) -> torch.Tensor:
    """H(p_n) of every row."""
    logs = logits.log_softmax(dim=1)
    return -(logs.exp() * logs).sum(dim=1)


def entropy_of_mean(logits: torch.Tensor) -> torch.Tensor:
    """H(mean_n p_n), the diversity of a batch.

    The mean is taken in log space: p log p of a probability that underflows has a NaN gradient.
    """
    logs = torch.logsumexp(logits.log_softmax(dim=1), dim=0) - math.log(len(logits))
    return -(logs.exp() * logs).sum()
