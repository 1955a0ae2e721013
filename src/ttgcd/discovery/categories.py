"""categories.json: every category with its count, examples and suggested names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ttgcd.methods.base import Method, Task, named_category
from ttgcd.prototypes.naming import suggest_names
from ttgcd.vlm.anchors import text_anchors


def describe_categories(
    method: Method,
    task: Task,
    counts: Sequence[int],
    exemplars: Sequence[Sequence[str]],
    words: Sequence[str],
) -> list[dict[str, Any]]:
    """One record a category, in the order of their ids."""
    prototypes = method.prototypes()
    names = _suggestions(task, prototypes, words)
    records = method.categories()
    records += [named_category(task.known, c) for c in range(len(records), len(counts))]
    return [
        replace(
            record,
            suggested_names=tuple(names.get(record.id, ())),
            count=int(counts[record.id]) if record.id < len(counts) else 0,
            exemplars=tuple(exemplars[record.id]) if record.id < len(exemplars) else (),
        ).as_json()
        for record in records
    ]


def _suggestions(
    task: Task, prototypes: np.ndarray | None, words: Sequence[str]
) -> dict[int, list[str]]:
    if task.vlm is None or prototypes is None or not words or len(prototypes) <= task.n_known:
        return {}
    embeddings = text_anchors(task.vlm, words, task.templates)
    has_one = prototypes.any(axis=1)
    novel = prototypes[task.n_known :]
    found = suggest_names(novel, prototypes[has_one], words, embeddings, exclude=task.known)
    return {task.n_known + i: names for i, names in enumerate(found)}
