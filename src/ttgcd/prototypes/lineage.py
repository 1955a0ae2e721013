"""Category ids that never change their meaning: births, merges and retirements."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ttgcd.prototypes.partition import group_sums


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
            shared = np.zeros((count, len(self.ids)), np.float32)
        else:
            shared = group_sums(one_hot(old, len(self.ids)), new, count)
        k = self.fixed
        ids = np.concatenate([self.ids[:k], np.full(count - k, -1)])
        for one, other in _matched(shared[k:, k:]):
            if shared[k + one, k + other] > 0:
                ids[k + one] = self.ids[k + other]
        events: list[Event] = []
        for column in np.flatnonzero(ids < 0).tolist():
            ids[column] = self.next_id
            self.born_at[int(ids[column])] = seen
            events.append(Birth(int(ids[column]), seen))
        for column in range(k, len(self.ids)):
            gone = int(self.ids[column])
            if gone in ids:
                continue
            went = shared[:, column]
            most = int(went.argmax())
            into = int(ids[most]) if went[most] > 0.5 * went.sum() else None
            self.ended[gone], self.ended_at[gone] = into, seen
            events.append(End(gone, into, seen))
        self.ids = ids
        return events


def one_hot(labels: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros((len(labels), count), np.float32)
    out[np.arange(len(labels)), labels] = 1
    return out


def _matched(shared: np.ndarray) -> list[tuple[int, int]]:
    """Rows and columns of the optimal matching."""
    if not shared.size:
        return []
    from scipy.optimize import linear_sum_assignment  # a third of a second that few runs need

    rows, columns = linear_sum_assignment(-shared)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))
