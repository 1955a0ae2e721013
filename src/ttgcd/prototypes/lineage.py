"""Category ids that never change their meaning: births, merges and retirements."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sparse

from ttgcd.prototypes.many import is_many


@dataclass(frozen=True)
class Birth:
    category: int
    seen: int


@dataclass(frozen=True)
class End:
    """A novel category that is no more; ``into`` is where most of its members went, None if they
    scattered."""

    category: int
    into: int | None
    seen: int


Event = Birth | End


@dataclass
class Lineage:
    """Which id each column of the model has: the known ones first, then the novel ones that a user
    has ``named``, then the other living novel ones."""

    n_known: int
    ids: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    born_at: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int | None] = field(default_factory=dict)
    ended_at: dict[int, int] = field(default_factory=dict)
    named: int = 0

    def __post_init__(self) -> None:
        if not len(self.ids):
            self.ids = np.arange(self.n_known)

    @property
    def fixed(self) -> int:
        """Columns that stay what they are: known and named."""
        return self.n_known + self.named

    @property
    def novel(self) -> int:
        """Living categories without a name."""
        return len(self.ids) - self.fixed

    @property
    def next_id(self) -> int:
        return self.n_known + len(self.born_at)

    def alias(self, category: int) -> int:
        """The living id that now stands for this one; itself if it lives or was scattered."""
        while self.ended.get(category) is not None:
            category = self.ended[category]  # type: ignore[assignment]
        return category

    def follow(self, old: np.ndarray | None, new: np.ndarray, count: int, seen: int) -> list[Event]:
        """Give ids to ``count`` new columns from how the same samples were labelled before and are
        labelled now. Fixed columns stay. One Hungarian matching of the novel ones by shared
        samples; a column that shares nothing is born, an old one left over ends."""
        if old is None:  # the first fit
            old = new = np.zeros(0, np.int64)
        ones = np.ones(len(new), np.float32)
        shared = sparse.csc_matrix((ones, (new, old)), shape=(count, len(self.ids)))
        k = self.fixed
        ids = np.concatenate([self.ids[:k], np.full(count - k, -1)])
        for one, other in _matched(shared[k:, k:]):
            ids[k + one] = self.ids[k + other]
        events: list[Event] = []
        for column in np.flatnonzero(ids < 0).tolist():
            ids[column] = self.next_id
            self.born_at[int(ids[column])] = seen
            events.append(Birth(int(ids[column]), seen))
        for column in np.flatnonzero(~np.isin(self.ids, ids)).tolist():
            gone = int(self.ids[column])
            went = shared[:, [column]].toarray().ravel()
            most = int(went.argmax())
            into = int(ids[most]) if went[most] > 0.5 * went.sum() else None
            self.ended[gone], self.ended_at[gone] = into, seen
            events.append(End(gone, into, seen))
        self.ids = ids
        return events


def _matched(shared: sparse.csc_matrix) -> list[tuple[int, int]]:
    """Rows and columns of the optimal matching, those that share anything."""
    if not shared.nnz:
        return []
    pairs = [] if not is_many(max(shared.shape)) else _certain(shared)
    rows, columns = (np.arange(size) for size in shared.shape)
    if pairs:
        taken = np.array(pairs).T
        rows, columns = (np.setdiff1d(n, at) for n, at in zip((rows, columns), taken, strict=True))
    from scipy.optimize import linear_sum_assignment  # a third of a second that few runs need

    left = shared[rows][:, columns].toarray()
    for one, other in zip(*linear_sum_assignment(-left), strict=True):
        if left[one, other] > 0:
            pairs.append((int(rows[one]), int(columns[other])))
    return pairs


def _certain(shared: sparse.csc_matrix) -> list[tuple[int, int]]:
    """Pairs that belong to an optimal matching: they share no less than the best other pair of the
    one and the best other pair of the other do together. Again with what is left, while there are
    any."""
    pairs: dict[int, int] = {}
    both = shared.tocoo()
    one, other, value = both.row, both.col, both.data
    while len(value):
        beside = _best_beside(one, value) + _best_beside(other, value)
        found = np.flatnonzero(value >= beside)
        if not len(found):
            break
        # Of pairs that share alike, one has both.
        found = found[np.unique(one[found], return_index=True)[1]]
        found = found[np.unique(other[found], return_index=True)[1]]
        pairs.update(zip(one[found].tolist(), other[found].tolist(), strict=True))
        left = ~(np.isin(one, one[found]) | np.isin(other, other[found]))
        one, other, value = one[left], other[left], value[left]
    return list(pairs.items())


def _best_beside(group: np.ndarray, value: np.ndarray) -> np.ndarray:
    """For every entry the best of the others of its group, 0 where it is alone."""
    order = np.lexsort((-value, group))
    _, first, inverse = np.unique(group[order], return_index=True, return_inverse=True)
    second = np.zeros(len(value), value.dtype)
    follows = np.flatnonzero(group[order][1:] == group[order][:-1])
    second[follows] = value[order][follows + 1]
    top = np.repeat(False, len(value))
    top[first] = True
    out = np.empty(len(value), value.dtype)
    out[order] = np.where(top, second[first][inverse], value[order][first][inverse])
    return out
