"""categories.json: every category with its count, examples and suggested names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ttgcd.methods.base import Method, Task, category_name
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
    bank = getattr(method, "bank", None)
    records = []
    for category in range(len(counts)):
        known = category < task.n_known
        record: dict[str, Any] = {
            "id": category,
            "kind": "known" if known else "novel",
            "name": category_name(task.known, category),
            "suggested_names": [] if known else names.get(category, []),
            "count": int(counts[category]),
            "exemplars": list(exemplars[category]),
        }
        if known and bank is not None:
            evidence = float(bank.evidence[category])
            record["evidence"] = evidence if np.isfinite(evidence) else None
            record["active"] = bool(bank.active[category])
        records.append(record)
    return records


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
