"""categories.json: every category with its count, examples and suggested names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ttgcd.methods.base import Method, Task, named_category
from ttgcd.prototypes.naming import GroupNames


def describe_categories(
    method: Method,
    task: Task,
    counts: Sequence[int],
    exemplars: Sequence[Sequence[str]],
    names: Mapping[int, GroupNames],
) -> list[dict[str, Any]]:
    """One record a category, in the order of their ids.

    Suggested names come best first; ``good_name`` is the one that stands out and that no other
    category gets, None when there is no good name.
    """
    records = method.categories()
    records += [named_category(task.known, c) for c in range(len(records), len(counts))]
    described = []
    for record in records:
        its = names.get(record.id)
        described.append(
            replace(
                record,
                suggested_names=its.words if its else (),
                count=int(counts[record.id]) if record.id < len(counts) else 0,
                exemplars=tuple(exemplars[record.id]) if record.id < len(exemplars) else (),
            ).as_json()
        )
        if its and its.words:
            described[-1]["name_scores"] = [round(score, 3) for score in its.scores]
            described[-1]["good_name"] = its.name
    return described
