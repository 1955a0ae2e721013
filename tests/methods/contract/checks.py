"""What every method is put through: worlds, runs and comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tests.fakes import FakeVLM, batches, image_world
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task
from ttgcd.methods.registry import METHODS, load_method, method_class
from ttgcd.storage.state import State
from ttgcd.vlm.anchors import text_anchors

NAMES = ("cat", "dog", "red car", "old house", "tall tree")
COLUMNS = ("index", "category", "score", "margin", "final", "novelty")

#: Short warm-ups, small heads: the same code in less time.
SMALL: dict[str, dict[str, Any]] = {
    "pact": {"warmup": 40, "epochs": 2, "realign_batch_size": 16},
    "simgcd++": {"warmup": 40, "hidden": 8},
    "hilo++": {"warmup": 40},
    "ttd": {"warmup": 40},
    "talon": {"warmup": 40},
    "hdbscan": {"min_cluster_size": 3},
}
#: The number of categories is found: ids may go beyond K + L - 1.
FREE_COUNT = {"hdbscan"}
ALL = tuple(METHODS)
NEEDS_IMAGES = tuple(
    name for name in ALL if name != "pact" and method_class(name).trains != "nothing"
)
EMBEDDINGS = tuple(name for name in ALL if name not in NEEDS_IMAGES)


def make(name: str) -> Method:
    return load_method(name, **SMALL.get(name, {}))


@dataclass
class Run:
    """Answers in the order they came, and the last word on every sample."""

    parts: list[Answer]
    category: np.ndarray
    final: np.ndarray


def task_for(
    vlm: FakeVLM | None, known: int = 3, novel: int = 2, seed: int = 5, dim: int = 16
) -> Task:
    names = NAMES[:known]
    if vlm is None:
        anchors = np.random.default_rng(1).normal(size=(known, dim)).astype(np.float32)
        anchors /= np.linalg.norm(anchors, axis=1, keepdims=True)
    else:
        vlm.reset()
        anchors = text_anchors(vlm, names, cache=False)
    return Task(known=names, anchors=anchors, novel=novel, vlm=vlm, seed=seed)


def images(count: int = 90, classes: int = 5, seed: int = 3) -> torch.Tensor:
    return image_world(count, classes, seed=seed)[0]


def embeddings(count: int = 90, dim: int = 16, classes: int = 5, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(classes, dim))
    rows = means[rng.integers(0, classes, count)] + 0.3 * rng.normal(size=(count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def run(method: Method, task: Task, data: torch.Tensor | np.ndarray, size: int = 16) -> Run:
    method.start(task)
    parts = [method.observe(batch) for batch in batches(data, size)]
    parts.append(method.finish())
    return summary(parts, len(data))


def summary(parts: list[Answer], count: int) -> Run:
    category = np.full(count, -1, np.int64)
    final = np.zeros(count, bool)
    for part in parts:
        category[part.index] = part.category
        final[part.index] = part.final
    return Run(parts, category, final)


def equal(a: Answer, b: Answer) -> bool:
    same = all(np.array_equal(getattr(a, c), getattr(b, c)) for c in COLUMNS)
    if a.features is None or b.features is None:
        return same and a.features is b.features
    return same and np.array_equal(a.features, b.features)


def equal_states(a: State, b: State) -> bool:
    return (
        a.values == b.values
        and a.arrays.keys() == b.arrays.keys()
        and all(np.array_equal(a.arrays[key], b.arrays[key]) for key in a.arrays)
    )


def sound(result: Run, method: Method, task: Task) -> None:
    """Every sample has one last, finite word within the ids."""
    assert (result.category >= 0).all()
    assert result.final.all()
    if method.name not in FREE_COUNT:
        assert result.category.max() < task.n_known + task.novel
    for part in result.parts:
        for column in ("score", "margin", "novelty"):
            assert np.isfinite(getattr(part, column)).all(), column
    prototypes = method.prototypes()
    assert prototypes is None or np.isfinite(prototypes).all()
