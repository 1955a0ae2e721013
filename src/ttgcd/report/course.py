"""How a run went as the stream passed by: shares, births, drift, in equal steps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ttgcd.report.ranking import is_seed
from ttgcd.report.run_files import RunFiles

#: A step of the stream holds at least this many samples, and there are at most so many steps.
LEAST_SAMPLES, MOST_STEPS = 64, 64


@dataclass(frozen=True)
class Course:
    """The stream in equal steps. ``fit_known`` and ``fit_novel`` are mean scores, NaN where a
    step has no such sample; ``evenly_used`` is the exponential of the assignment entropy."""

    edges: np.ndarray  # (steps + 1,) stream indexes
    novel_share: np.ndarray
    evenly_used: np.ndarray
    fit_known: np.ndarray
    fit_novel: np.ndarray
    births_known: np.ndarray  # stream index at which each category in use was first seen, sorted
    births_novel: np.ndarray


def course(run: RunFiles) -> Course:
    """Read the course of the stream from the assignments, which are in stream order."""
    n = len(run)
    steps = max(1, min(MOST_STEPS, n // LEAST_SAMPLES))
    edges = np.linspace(0, n, steps + 1).round().astype(int)
    seeds = seed_rows(run)
    width = int(run.category.max(initial=0)) + 1
    table = np.stack(
        [np.bincount(run.category[begin:end], minlength=width) for begin, end in pairwise(edges)]
    )
    return Course(
        edges=edges,
        novel_share=_mean(run.is_novel, edges),
        evenly_used=np.exp(entropy(table)),
        fit_known=_mean(run.score, edges, ~run.is_novel),
        fit_novel=_mean(run.score, edges, run.is_novel & ~seeds),
        births_known=_births(run, "known"),
        births_novel=_births(run, "novel"),
    )


def seed_rows(run: RunFiles) -> np.ndarray:
    """Samples that are their own category's prototype: their score of 1 says nothing.

    A novel prototype begins as a copy of one sample of the buffer (Eq. 6-7), so that sample, and
    only it and its copies, has a cosine of 1 to its category.
    """
    until = run.warmup or len(run)
    seeds = run.is_novel & is_seed(run.score)
    seeds[until:] = False
    return seeds


def entropy(table: np.ndarray) -> np.ndarray:
    """Entropy in nats of every row of counts; 0 for an empty row."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    return np.maximum(-(share * logs).sum(axis=1), 0.0)


def _mean(values: np.ndarray, edges: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    """The mean in every step, NaN where there is nothing to take it of."""
    means = np.full(len(edges) - 1, np.nan)
    for step, (begin, end) in enumerate(pairwise(edges)):
        part = values[begin:end] if among is None else values[begin:end][among[begin:end]]
        if len(part):
            means[step] = part.mean(dtype=np.float64)
    return means


def _births(run: RunFiles, kind: str) -> np.ndarray:
    first = np.full(int(run.category.max(initial=0)) + 1, -1)
    for rows in run.stretches():
        ids, at = np.unique(run.category[rows], return_index=True)
        new = first[ids] < 0
        first[ids[new]] = rows.start + at[new]
    seen = {int(c): int(first[c]) for c in np.flatnonzero(first >= 0)}
    born = [
        seen[c.id] if c.born_at is None else c.born_at
        for c in run.categories
        if c.kind == kind and c.id in seen
    ]
    return np.sort(np.array(born, int))
