"""Coarser and finer answers from one run: a tree over the parts of the categories found.

Parts of a category are joined first, whole categories are merged above: so every level is nested in
the next, fine in found, found in coarse. Both by Ward's rule with the sizes of the groups: what is
joined next raises the squared distances of samples to the centre of their group least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Ids of groups that are neither a category nor one of its parts: this plus the id of the category,
#: or part, that joined last, which is the younger of the two oldest ones of what was joined. No two
#: groups of a tree share it, and it stays as long as the same groups meet.
FIRST_MERGED_ID, FIRST_JOINED_ID = 2_000_000, 1_000_000_000
#: A hill this near to the number found, as a ratio, is the number found.
SAME = 1.25


@dataclass(frozen=True)
class Merges:
    """``pairs`` (m, 2) of nodes; the nodes joined are 0..n-1, the one that pair i makes is n + i.
    ``heights`` ascend."""

    pairs: np.ndarray
    heights: np.ndarray


def ward(centres: np.ndarray, sizes: np.ndarray) -> Merges:
    """Ward's tree over groups of given centres and sizes, by nearest-neighbour chains.

    Two groups are n_a n_b / (n_a + n_b) |m_a - m_b|^2 apart; Lance and Williams' formula gives the
    distances of what they make.
    """
    n = len(centres)
    if n < 2:
        return Merges(np.zeros((0, 2), np.int64), np.zeros(0))
    size = np.maximum(np.asarray(sizes, np.float32), 1)
    apart = _apart(np.asarray(centres, np.float32), size)
    node = np.arange(n)  # which node lives in each row
    alive = np.ones(n, bool)
    height = np.zeros(2 * n - 1)
    pairs = np.zeros((n - 1, 2), np.int64)
    chain: list[int] = []
    for made in range(n, 2 * n - 1):
        if not chain:
            chain = [int(alive.argmax())]
        while True:
            top = chain[-1]
            nearest = int(apart[top].argmin())
            # The one before in the chain wins a tie, or the chain would never end.
            if len(chain) > 1 and apart[top, chain[-2]] <= apart[top, nearest]:
                break
            chain.append(nearest)
        a, b = sorted((chain.pop(), chain.pop()))
        pairs[made - n] = node[a], node[b]
        height[made] = max(float(apart[a, b]), height[node[a]], height[node[b]])
        others = alive.copy()
        others[[a, b]] = False
        both = size[a] + size[b]
        row = (size[a] + size) * apart[a] + (size[b] + size) * apart[b] - size * apart[a, b]
        row = np.where(others, row / (both + size), np.inf).astype(np.float32)
        apart[a], apart[:, a] = row, row
        apart[b], apart[:, b] = np.inf, np.inf
        alive[b], size[a], node[a] = False, both, made
    return _ascending(pairs, height[n:])


def _apart(points: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Ward's distances of all groups, row by row: symmetric to the last bit, or chains would have
    no end; infinite on the diagonal."""
    n = len(points)
    square = np.einsum("nd,nd->n", points, points)
    apart = np.full((n, n), np.inf, np.float32)
    for row in range(n - 1):
        others = slice(row + 1, n)
        gap = square[row] + square[others] - 2 * (points[others] @ points[row])
        gap = np.maximum(gap, 0) * (size[row] * size[others] / (size[row] + size[others]))
        apart[row, others] = gap
        apart[others, row] = gap
    return apart


def _ascending(pairs: np.ndarray, heights: np.ndarray) -> Merges:
    """Merges in the order of their heights; what they make is numbered anew."""
    n = len(pairs) + 1
    order = np.argsort(heights, kind="stable")  # a group is never below its own parts
    number = np.concatenate([np.arange(n), np.empty(n - 1, np.int64)])
    number[n + order] = np.arange(n, 2 * n - 1)
    return Merges(np.sort(number[pairs[order]], axis=1), heights[order])


@dataclass(frozen=True)
class Tree:
    """Joins of parts, then of categories: from ``finest`` groups down to one.

    Parameters
    ----------
    category
        Of every leaf; a category may have several.
    pairs
        The nodes that each step joins; leaves are 0..n-1, step i makes node n + i.
    heights
        What each step costs; ascending among joins of parts, and again among merges of categories.
    found
        The number of categories.
    """

    category: np.ndarray
    pairs: np.ndarray
    heights: np.ndarray
    found: int

    @classmethod
    def of(cls, centres: np.ndarray, sizes: np.ndarray, category: np.ndarray) -> Tree:
        """Over parts with members; the leaves come in the order given."""
        n = len(centres)
        present, at = np.unique(category, return_inverse=True)
        at = at.ravel()
        joins: list[tuple[float, int, int, int]] = []  # height, category, step, ...
        inner: list[tuple[np.ndarray, Merges]] = []
        for c in range(len(present)):
            own = np.flatnonzero(at == c)
            inner.append((own, ward(centres[own], sizes[own])))
            joins += [(float(h), c, s, 0) for s, h in enumerate(inner[-1][1].heights)]
        joins.sort()
        number: dict[tuple[int, int], int] = {}  # (category, node of its own tree): node
        top = np.zeros(len(present), np.int64)
        for c, (own, _) in enumerate(inner):
            number |= {(c, leaf): int(own[leaf]) for leaf in range(len(own))}
            top[c] = own[0]
        pairs: list[tuple[int, int]] = []
        for _height, c, step, _ in joins:
            a, b = inner[c][1].pairs[step].tolist()
            pairs.append((number[c, a], number[c, b]))
            top[c] = number[c, len(inner[c][0]) + step] = n + len(pairs) - 1
        weight = np.bincount(at, sizes, len(present))
        sums = np.zeros((len(present), centres.shape[1]))
        np.add.at(sums, at, centres * np.asarray(sizes, np.float64)[:, None])
        above = ward(sums / np.maximum(weight, 1e-12)[:, None], weight)
        node = np.concatenate([top, n + len(pairs) + np.arange(len(above.pairs))])
        return cls(
            np.asarray(category, np.int64),
            np.concatenate([np.array(pairs, np.int64).reshape(-1, 2), node[above.pairs]]),
            np.concatenate([np.array([j[0] for j in joins]), above.heights]),
            len(present),
        )

    @property
    def finest(self) -> int:
        return len(self.category)

    def cut(self, groups: int) -> np.ndarray:
        """The node under which each leaf stands when so many groups are left."""
        n = self.finest
        if not 1 <= groups <= n:
            raise ValueError(f"a tree of {n} leaves has no {groups} groups")
        steps = n - groups
        above = np.arange(n + steps)
        for step in range(steps):
            above[self.pairs[step]] = n + step
        for node in range(n + steps - 1, -1, -1):
            above[node] = above[above[node]]
        return above[:n]

    def ids(self, parts: np.ndarray) -> np.ndarray:
        """The id of every node, given those of the leaves' parts: a category's own where the node
        is one, a part's where it is a part of one."""
        n = self.finest
        joins = n - self.found
        oldest = np.concatenate([parts, np.zeros(n - 1, np.int64)])
        ids = oldest.copy()
        owner = np.concatenate([self.category, np.zeros(n - 1, np.int64)])
        present, at, count = np.unique(self.category, return_inverse=True, return_counts=True)
        alone = np.flatnonzero(count[at.ravel()] == 1)
        ids[alone] = self.category[alone]
        left = dict(zip(present.tolist(), count.tolist(), strict=True))
        for step, (a, b) in enumerate(self.pairs.tolist()):
            node = n + step
            if step == joins:
                oldest = owner.copy()
            younger = max(oldest[a], oldest[b])
            oldest[node], owner[node] = min(oldest[a], oldest[b]), owner[a]
            ids[node] = younger + (FIRST_JOINED_ID if step < joins else FIRST_MERGED_ID)
            if step < joins:
                left[int(owner[a])] -= 1
                if left[int(owner[a])] == 1:
                    ids[node] = owner[a]
        return ids

    def coarse(self, hills: Sequence[int] = ()) -> int:
        """How many groups the coarse level has.

        The nearest hill clearly below the number found; where there is none, between the square
        root and the half of it, the number at which the next merge costs most more than the last,
        as a ratio. Up to three categories stay as they are.
        """
        c = self.found
        lower = [k for k in hills if k >= 2 and k * SAME <= c]
        if lower:
            return max(lower)
        if c < 4:
            return c
        highest = c // 2
        lowest = min(math.ceil(math.sqrt(c)), highest)
        merges = np.maximum(self.heights[self.finest - c :], 1e-12)
        numbers = np.arange(lowest, highest + 1)
        # With k groups left, c - k merges are done.
        steps = merges[c - numbers] / merges[c - numbers - 1]
        return int(numbers[len(numbers) - 1 - steps[::-1].argmax()])


def finer(found: int, hills: Sequence[int] = ()) -> int | None:
    """How many groups the fine level has at most: the nearest hill clearly above the number found;
    None where there is none, and what the geometry supports decides."""
    return min((k for k in hills if k >= found * SAME), default=None)
