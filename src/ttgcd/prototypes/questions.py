"""Which corrections would help most: what to ask the user next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.teaching import two_halves

_LEAST = 4  # members; smaller groups tell nothing about their own spread


@dataclass(frozen=True)
class Question:
    """Something a look at the pictures decides.

    ``ask`` "same": are these two categories one? "mixed": is this category two things? "border":
    to which of the two does this sample belong? ``gain`` is how many answers hang on it, times how
    doubtful it is (0 to 1): questions come in this order.
    """

    ask: Literal["same", "mixed", "border"]
    categories: tuple[int, ...]
    row: int | None
    gain: float


def next_questions(
    features: np.ndarray,
    categories: np.ndarray,
    novel: Sequence[int],
    top: int = 12,
    settled: np.ndarray | None = None,
) -> list[Question]:
    """The ``top`` most useful questions about a finished stream.

    Two categories may be the same when their centres are nearer to each other than the members of
    the looser one are to their own centre. A category looks mixed when its two halves are as far
    apart as neighbouring categories are. A sample is on a border when two centres are equally
    near. ``novel`` are the ids of novel categories: two known classes are never the same.
    ``settled`` marks samples that the user has confirmed: they are not asked about.
    """
    ids, at = np.unique(categories, return_inverse=True)
    at = at.ravel()
    if len(ids) < 2:
        return []
    rows = features.astype(np.float32)
    counts = np.bincount(at)
    sums = np.zeros((len(ids), rows.shape[1]))
    np.add.at(sums, at, rows.astype(np.float64))
    centres = normalise(sums).astype(np.float32)
    cosines = rows @ centres.T
    own = cosines[np.arange(len(rows)), at]
    tightness = np.bincount(at, own) / counts
    between = centres @ centres.T
    np.fill_diagonal(between, -1.0)
    found = _same(ids, counts, tightness, between, set(novel))
    found += _mixed(rows, ids, at, counts, between)
    found += _border(cosines, own, ids, at, counts, settled)
    return sorted(found, key=lambda question: -question.gain)[:top]


def _same(
    ids: np.ndarray, counts: np.ndarray, tightness: np.ndarray, between: np.ndarray, novel: set[int]
) -> list[Question]:
    found = []
    for i in range(len(ids)):
        for j in np.argsort(-between[i])[:3]:
            if j <= i and i in np.argsort(-between[j])[:3]:
                continue  # asked already from the other side
            pair = (int(ids[i]), int(ids[j]))
            if min(counts[i], counts[j]) < 2 or not novel & set(pair):
                continue
            # A looser category is a vaguer one: its members are as near to the other centre.
            doubt = 1.0 - min(1.0, max(0.0, min(tightness[i], tightness[j]) - between[i, j]) / 0.3)
            if doubt > 0:
                found.append(Question("same", pair, None, doubt * float(min(counts[i], counts[j]))))
    return found


def _mixed(
    rows: np.ndarray, ids: np.ndarray, at: np.ndarray, counts: np.ndarray, between: np.ndarray
) -> list[Question]:
    apart: dict[int, tuple[float, int]] = {}  # cosine of the halves' centres, size of the smaller
    for i in range(len(ids)):
        members = rows[at == i]
        half = two_halves(members) if counts[i] >= _LEAST else np.zeros(0, bool)
        if half.sum() >= 2:
            one, other = members[half].mean(axis=0), members[~half].mean(axis=0)
            apart[i] = (float(normalise(one) @ normalise(other)), int(half.sum()))
    if not apart:
        return []
    # Halves as near as most halves are: not mixed. As far as categories from their nearest: mixed.
    usual = float(np.median([cosine for cosine, _ in apart.values()]))
    neighbours = float(np.median(between.max(axis=1)))
    scale = max(usual - neighbours, 1e-3)
    return [
        Question("mixed", (int(ids[i]),), None, min(1.0, (usual - cosine) / scale) * smaller)
        for i, (cosine, smaller) in apart.items()
        if cosine < usual
    ]


def _border(
    cosines: np.ndarray,
    own: np.ndarray,
    ids: np.ndarray,
    at: np.ndarray,
    counts: np.ndarray,
    settled: np.ndarray | None,
) -> list[Question]:
    others = cosines.copy()
    others[np.arange(len(at)), at] = -np.inf
    rival = others.argmax(axis=1)
    gap = np.maximum(own - others.max(axis=1), 0.0)
    spread = float(np.quantile(gap, 0.9)) or 1.0
    doubt = 1.0 - np.minimum(gap / spread, 1.0)
    if settled is not None:
        doubt = np.where(settled, 0.0, doubt)
    order = np.argsort(-doubt, kind="stable")[:20]
    return [
        Question("border", (int(ids[at[row]]), int(ids[rival[row]])), int(row), float(doubt[row]))
        for row in order
        if doubt[row] > 0.5
    ]
