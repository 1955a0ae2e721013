"""Thousands of categories: from when on, work in blocks of rows, and seeds drawn in batches.

Below ``MANY`` categories nothing here is in the way, and numbers are those of whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

#: More categories than this are many: fits then take shorter ways, which differ a little.
MANY = 1000
#: Rows of the reservoir for each of many categories.
ROWS_OF_EACH = 20
#: Entries of a rows x categories array that is held whole, and of a block of one that is not.
WHOLE, BLOCK = 2**24, 2**22
#: Seeds drawn at once, how many of them are taken, and which share of what one explains it must
#: still explain when others of the batch have been taken.
DRAWN, TAKEN, STILL_NEW = 256, 64, 0.5


def is_many(categories: int) -> bool:
    return categories > MANY


def is_whole(rows: int, columns: int) -> bool:
    """Whether an array of this shape is small enough to be held."""
    return rows * columns <= WHOLE


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Parts of the rows, such that (part x columns) is small; all at once where it is anyway."""
    size = max(1, rows) if is_whole(rows, columns) else max(1, BLOCK // columns)
    for start in range(0, rows, size):
        yield slice(start, min(rows, start + size))


def spread_in_batches(
    rows: np.ndarray, best: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Places of ``count`` rows for seeds, as ``partition.spread_seeds`` chooses them, many at a
    time: of each batch, drawn by how badly rows are explained so far, those that explain most and
    do not explain the same."""
    best = np.minimum(best, 1).astype(np.float32)
    chosen: list[int] = []
    while len(chosen) < count:
        lack = np.maximum(1e-9, 1 - best).astype(np.float64)
        tried = rng.choice(len(rows), size=DRAWN, p=lack / lack.sum())
        near = rows[tried] @ rows.T
        gain = np.array([np.maximum(0, one - best).sum() for one in near])
        most = min(TAKEN, count - len(chosen))
        for place in np.argsort(-gain, kind="stable"):
            if np.maximum(0, near[place] - best).sum() < STILL_NEW * gain[place]:
                continue
            best = np.maximum(best, near[place])
            chosen.append(int(tried[place]))
            most -= 1
            if not most:
                break
    return np.array(chosen, np.int64)
