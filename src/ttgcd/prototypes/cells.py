"""Rows that lie together: regions, and the nearest of a row where there are too many to compare all
with all, looked for in a few cells only."""

from __future__ import annotations

import numpy as np

from ttgcd.prototypes.calibration import unit

#: Rows in a cell in the mean, and cells in which each row looks for those next to it.
_ROWS, _LOOKED = 200, 16
#: Rows whose cells are found at once.
_CHUNK = 8192
#: Steps of k-means by which regions are found.
_STEPS = 4


def nearest_in_cells(rows: np.ndarray, count: int) -> np.ndarray:
    """Places of the ``count`` nearest other rows of every unit row, the nearest first, among those
    in the ``_LOOKED`` cells that are next to it. Cells are those of rows drawn at even distances,
    after one step of k-means."""
    n = len(rows)
    cells = max(_LOOKED, n // _ROWS)
    centres = _moved(rows, rows[np.linspace(0, n - 1, cells).astype(np.int64)], 1)
    looked = _leading(rows, centres, _LOOKED)
    members = _groups(looked[:, 0], cells)
    asking = _groups(looked.ravel(), cells)
    best = np.full((n, count), -np.inf, np.float32)
    found = np.tile(np.arange(n)[:, None], (1, count))
    for cell in range(cells):
        here, who = members[cell], asking[cell] // _LOOKED
        if not len(here) or not len(who):
            continue
        near = rows[who] @ rows[here].T
        near[who[:, None] == here] = -np.inf
        near = np.concatenate([best[who], near], axis=1)
        places = np.argpartition(-near, count - 1, axis=1)[:, :count]
        best[who] = np.take_along_axis(near, places, 1)
        names = np.concatenate([np.arange(count), count + here])  # columns behind count are rows
        kept = np.take_along_axis(found[who], np.minimum(places, count - 1), 1)
        found[who] = np.where(places < count, kept, names[places] - count)
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(found, order, 1)


def regions(rows: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Places of the unit rows of ``count`` regions, in random order."""
    centres = _moved(rows, rows[rng.choice(len(rows), count, replace=False)], _STEPS)
    groups = _groups(_leading(rows, centres, 1)[:, 0], count)
    return [groups[place] for place in rng.permutation(count)]


def _moved(rows: np.ndarray, centres: np.ndarray, steps: int) -> np.ndarray:
    """Centres after so many steps of spherical k-means."""
    for _ in range(steps):
        sums = np.zeros_like(centres)
        np.add.at(sums, _leading(rows, centres, 1)[:, 0], rows)
        centres = np.where(sums.any(axis=1, keepdims=True), unit(sums), centres)
    return centres


def _leading(rows: np.ndarray, centres: np.ndarray, count: int) -> np.ndarray:
    """Places of the ``count`` nearest centres of every row, the nearest first."""
    out = np.empty((len(rows), count), np.int64)
    for start in range(0, len(rows), _CHUNK):
        near = rows[start : start + _CHUNK] @ centres.T
        if count == 1:
            out[start : start + _CHUNK, 0] = near.argmax(axis=1)
            continue
        places = np.argpartition(-near, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(near, places, 1), axis=1, kind="stable")
        out[start : start + _CHUNK] = np.take_along_axis(places, order, 1)
    return out


def _groups(labels: np.ndarray, count: int) -> list[np.ndarray]:
    """Places of every label 0..count-1."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(1, count)))
