"""NaN and infinity, found before they are kept."""

from __future__ import annotations

import numpy as np


def finite_rows(values: np.ndarray) -> np.ndarray:
    """Mask of the rows of a matrix that hold neither NaN nor infinity.

    A sum over the row is finite only if every entry is, up to overflow, which is looked at again:
    one pass over the matrix instead of two.
    """
    with np.errstate(all="ignore"):
        finite = np.isfinite(values.sum(axis=1))
    doubtful = np.flatnonzero(~finite)
    if len(doubtful):
        finite[doubtful] = np.isfinite(values[doubtful]).all(axis=1)
    return finite
