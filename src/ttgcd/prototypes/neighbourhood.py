"""Which samples lie next to which: a graph, means over its links, and its leading directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.cells import nearest_in_cells
from ttgcd.prototypes.many import WHOLE

#: Nearest samples that a sample is linked to.
NEAR = 10
#: Rows in the mean of a row and those next to it.
AVERAGED = 8
#: Up to so many samples a graph is decomposed whole.
_SMALL = 256
#: Directions of a larger one: so many more are looked for, in so many rounds of so many steps.
_SPARE, _ROUNDS, _STEPS = 32, 12, 6
#: Rows compared with all others at once, fewer where there are very many.
_CHUNK = 2048
#: The nearest of more rows are looked for in some cells only.
EXACT = 20_000


def nearest(rows: np.ndarray, count: int, of: np.ndarray | None = None) -> np.ndarray:
    """Places of the ``count`` nearest other rows of every row, or of those at the places ``of``,
    the nearest first, (n, count); fewer where there are not twice as many rows."""
    count = min(count, max(0, (len(rows) - 1) // 2))
    if count and of is None and len(rows) > EXACT:
        return nearest_in_cells(rows, count)
    wanted = np.arange(len(rows)) if of is None else of
    out = np.empty((len(wanted), count), np.int64)
    size = max(1, min(_CHUNK, WHOLE // max(1, len(rows))))
    for start in range(0, len(wanted) if count else 0, size):
        mine = wanted[start : start + size]
        near = (rows[start : start + size] if of is None else rows[mine]) @ rows.T
        near[np.arange(len(near)), mine] = -np.inf
        places = np.argpartition(-near, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(near, places, 1), axis=1, kind="stable")
        out[start : start + size] = np.take_along_axis(places, order, 1)
    return out


def among_near(rows: np.ndarray) -> np.ndarray:
    """Every row averaged with its ``AVERAGED`` - 1 nearest."""
    near = nearest(rows, AVERAGED - 1)
    total = rows.copy()
    for rank in range(near.shape[1]):
        total += rows[near[:, rank]]
    return unit(total)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Samples as a graph: two are linked where one is among the ``NEAR`` nearest of the other."""

    links: sparse.csr_matrix
    degree: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, count: int = NEAR) -> Neighbourhood:
        near = nearest(rows, count)
        n, k = near.shape
        ones = np.ones(n * k, np.float32)
        links = sparse.csr_matrix((ones, (np.repeat(np.arange(n), k), near.ravel())), shape=(n, n))
        links = links.maximum(links.T).tocsr()
        return cls(links, np.asarray(links.sum(axis=1), np.float32).ravel())

    def calm(self, rows: np.ndarray) -> np.ndarray:
        """Half of every row and half of the mean of those that it is linked to: texts that are
        asked about this contradict themselves less."""
        mean = np.asarray(self.links @ rows) / np.maximum(self.degree, 1)[:, None]
        return np.where(self.degree[:, None] > 0, 0.5 * (rows + mean), rows).astype(np.float32)

    def diffused(self, rows: np.ndarray) -> np.ndarray:
        """Rows after two steps of diffusion over the graph, unit(S S rows)."""
        steps = self._normalised()
        return unit(np.asarray(steps @ (steps @ rows)))

    def directions(self, count: int) -> np.ndarray:
        """Samples as unit rows of the ``count`` leading eigenvectors of the graph,
        S = D^-1/2 A D^-1/2: where two are joined by many short ways they point the same way."""
        steps, n = self._normalised(), len(self.degree)
        if n <= _SMALL or 3 * count >= n:
            return unit(np.linalg.eigh(steps.toarray().astype(np.float64))[1][:, -count:])
        # A block at once: where the graph falls into parts the first eigenvalue comes many times,
        # and one vector alone would find one of its directions.
        block = np.random.default_rng(0).normal(size=(n, count + _SPARE)).astype(np.float32)
        for _ in range(_ROUNDS):
            for _ in range(_STEPS):
                block = 0.5 * (block + steps @ block)
            block = np.linalg.qr(block)[0]
        vectors = np.linalg.eigh((block.T @ (steps @ block)).astype(np.float64))[1][:, -count:]
        return unit(block @ vectors.astype(np.float32))

    def _normalised(self) -> sparse.csr_matrix:
        scale = sparse.diags(1 / np.sqrt(np.maximum(self.degree, 1)))
        return (scale @ self.links @ scale).tocsr()
