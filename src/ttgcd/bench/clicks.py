"""How much a few corrections help: a user who looks at the groups and makes the most useful edits.

The simulated user knows every image's class by looking at it. At each step it makes the one edit
that puts most images right at a glance: merge two groups that show mostly the same class, split
off a class that has no group of its own (picking a few of its images), or move one image to the
group of its class. The edits go through the product's own replay, so that neighbours follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.edits import Edit, apply
from ttgcd.evaluation.accuracy import split_accuracy

if TYPE_CHECKING:
    import pyarrow

#: Images that the user picks when it splits a class off.
PICKED = 5
#: A moved image puts itself right for sure and its look-alikes perhaps.
_PERHAPS = 0.8


@dataclass(frozen=True)
class _Click:
    gain: float
    edit: Edit


def after_clicks(
    features: np.ndarray,
    categories: np.ndarray,
    labels: np.ndarray,
    n_known: int,
    clicks: Sequence[int] = (0, 5, 10, 20, 50),
    teach: bool = True,
) -> dict[int, float]:
    """All (fraction) after so many corrections of an answered stream.

    ``features`` are unit rows, ``categories`` the answers, ``labels`` the true classes, which only
    the user and the score see. Without ``teach`` an edit changes only what it names.
    """
    table, records = _as_files(categories, n_known)
    edits: list[Edit] = []
    now, settled = categories.astype(np.int64), np.zeros(len(labels), bool)
    found: dict[int, float] = {}
    for number in range(max(clicks) + 1):
        if number in clicks:
            found[number] = _all(now, labels, n_known)
        click = _most_useful(now, labels, n_known, settled)
        if click is None:  # nothing is left to put right
            return {**dict.fromkeys(clicks, _all(now, labels, n_known)), **found}
        edits.append(replace(click.edit, number=len(edits) + 1))
        after = apply(edits, table, records, features if teach else None)
        now = after.assignments.column("category").to_numpy().astype(np.int64)
        for image in click.edit.images:
            settled[int(image)] = True
    return found


def _all(now: np.ndarray, labels: np.ndarray, n_known: int) -> float:
    """All; ids of categories that a split made are brought down to the next free ones."""
    novel = np.unique(now[now >= n_known])
    dense = np.where(now < n_known, now, n_known + np.searchsorted(novel, now))
    return split_accuracy(dense, labels, n_known).all


def _most_useful(
    now: np.ndarray, labels: np.ndarray, n_known: int, settled: np.ndarray
) -> _Click | None:
    groups, at = np.unique(now, return_inverse=True)
    counts = np.zeros((len(groups), int(labels.max()) + 1), np.int64)
    np.add.at(counts, (at.ravel(), labels), 1)
    majority = counts.argmax(axis=1)
    home: dict[int, int] = {}  # class: row of the group that shows most of it, as its majority
    for row in np.argsort(-counts.max(axis=1), kind="stable"):
        home.setdefault(int(majority[row]), int(row))
    clicks: list[_Click] = []
    for row, group in enumerate(groups.tolist()):
        own = int(majority[row])
        if home[own] != row and group >= n_known:
            into = int(groups[home[own]])
            clicks.append(_Click(float(counts[row, own]), Edit("merge", category=group, into=into)))
        for label in np.argsort(-counts[row], kind="stable")[:4].tolist():
            size = int(counts[row, label])
            if label == own or size == 0:
                continue
            images = np.flatnonzero((now == group) & (labels == label) & ~settled)
            if not len(images):
                continue
            picked = tuple(map(str, images[:PICKED].tolist()))
            if label not in home and size > 1:
                clicks.append(_Click(float(size), Edit("split", category=group, images=picked)))
            elif label in home:
                gain = 1.0 if size == 1 else _PERHAPS * size
                into = int(groups[home[label]])
                clicks.append(_Click(gain, Edit("move", images=picked[:1], into=into)))
    return max(clicks, key=lambda click: click.gain, default=None)


def _as_files(categories: np.ndarray, n_known: int) -> tuple[pyarrow.Table, list[dict[str, Any]]]:
    """The rows and records that edits are made on; image ids are the rows' numbers."""
    import pyarrow as pa

    kinds = np.where(categories < n_known, "known", "novel")
    table = pa.table(
        {
            "id": [str(row) for row in range(len(categories))],
            "category": pa.array(categories, pa.int32()),
            "kind": kinds.tolist(),
            "name": [f"category {category}" for category in categories.tolist()],
            "score": np.zeros(len(categories), np.float32),
        }
    )
    records: list[dict[str, Any]] = [
        {
            "id": int(category),
            "kind": "known" if category < n_known else "novel",
            "name": f"category {category}",
            "count": int((categories == category).sum()),
            "exemplars": [],
        }
        for category in sorted({*range(n_known), *categories.tolist()})
    ]
    return table, records
