"""Small made-up streams and their answers, for the report's tests."""

from __future__ import annotations

import numpy as np

from ttgcd.methods.answer import Answer
from ttgcd.report import StreamSummary
from ttgcd.streams.base import Batch


def batch(start: int, n: int, prefix: str = "img") -> Batch:
    index = range(start, start + n)
    return Batch(tuple(f"{prefix}-{i}" for i in index), start, tuple(index), start + n)


def answers(start: int, n: int, categories: int, seed: int = 0, final: bool = True) -> Answer:
    """Reproducible answers: those of a sample depend on its index alone."""
    rows = [np.random.default_rng([seed, i]) for i in range(start, start + n)]
    features = np.stack([rng.standard_normal(16) for rng in rows]).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    category = np.array([rng.integers(categories) for rng in rows])
    score = np.array([rng.random() for rng in rows])
    return Answer.make(start, category, score, final=final, features=features)


def summarise(
    n_known: int, n_novel: int, samples: int, step: int = 50, prefix: str = "img"
) -> StreamSummary:
    summary = StreamSummary(n_known, n_novel, map_points=40)
    for start in range(0, samples, step):
        n = min(step, samples - start)
        summary.write(batch(start, n, prefix), answers(start, n, n_known + n_novel))
    return summary
