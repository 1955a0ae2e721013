"""Running a method for a check: tasks, sessions, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ttgcd.engines.features import FeaturesInMemory
from ttgcd.engines.session import Session
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Caller, Method, Task
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch
from ttgcd.testing.model import TinyVLM, batches
from ttgcd.vlm.anchors import text_anchors

NAMES = ("cat", "dog", "red car", "old house", "tall tree")
COLUMNS = ("index", "category", "score", "margin", "final", "novelty")
SIZE = 16


class Recorder:
    """A sink that keeps all that was said, in order."""

    def __init__(self) -> None:
        self.parts: list[Answer] = []

    def write(self, batch: Batch | None, rows: Answer) -> None:
        self.parts.append(rows)


@dataclass
class Run:
    """Answers in the order they came, and the last word on every sample."""

    parts: list[Answer]
    category: np.ndarray
    final: np.ndarray


@dataclass
class Opened:
    """A session with its ears."""

    session: Session
    recorder: Recorder

    def finish(self, count: int) -> Run:
        self.session.finish()
        return summary(self.recorder.parts, count)


def task_for(
    vlm: TinyVLM | None, known: int = 3, novel: int | None = 2, seed: int = 5, dim: int = 16
) -> Task:
    names = NAMES[:known]
    if vlm is None:
        anchors = np.random.default_rng(1).normal(size=(known, dim)).astype(np.float32)
        anchors /= np.linalg.norm(anchors, axis=1, keepdims=True)
    else:
        anchors = np.zeros((0, vlm.dim), np.float32)
        if names:
            anchors = text_anchors(vlm, names, cache=False)
    return Task(known=names, anchors=anchors, novel=novel, vlm=vlm, seed=seed)


def opened(
    method: Method, task: Task, size: int | None = None, caller: Caller | None = None
) -> Opened:
    recorder, features = Recorder(), FeaturesInMemory()
    session = Session(
        method, task, [recorder, features], batch_size=size, store=features, caller=caller
    )
    return Opened(session, recorder)


def run(method: Method, task: Task, data: torch.Tensor | np.ndarray, size: int = SIZE) -> Run:
    """A whole stream, as a user's run would do it."""
    stream = opened(method, task)
    for batch in batches(data, size):
        stream.session.push(batch)
    return stream.finish(len(data))


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


def equal_parts(a: list[Answer], b: list[Answer]) -> bool:
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))


def equal_states(a: State, b: State) -> bool:
    return (
        a.values == b.values
        and a.arrays.keys() == b.arrays.keys()
        and all(np.array_equal(a.arrays[key], b.arrays[key]) for key in a.arrays)
    )


def sound(result: Run, method: Method) -> None:
    """Every sample has one last, finite word, on a category that the method tells of."""
    assert (result.category >= 0).all(), "a sample got no answer"
    assert result.final.all(), "an answer is still provisional when the stream is over"
    records = method.categories()
    assert [record.id for record in records] == list(range(len(records))), "ids have gaps"
    assert result.category.max() < len(records), "an answer names a category nobody told of"
    for part in result.parts:
        for column in ("score", "margin", "novelty"):
            assert np.isfinite(getattr(part, column)).all(), f"{column} is not finite"
    prototypes = method.prototypes()
    assert prototypes is None or np.isfinite(prototypes).all(), "a prototype is not finite"
