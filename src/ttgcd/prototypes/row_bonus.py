"""What texts add to the scores of rows: one array where it is small, else worked out by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.many import blocks, is_whole
from ttgcd.prototypes.text_evidence import Bonus


@dataclass(frozen=True, eq=False)
class RowBonus:
    """The bonus of every category for these rows, as a ``whole`` array where that is held."""

    rows: np.ndarray
    bonus: Bonus
    whole: np.ndarray | None

    @classmethod
    def of(cls, rows: np.ndarray, bonus: Bonus) -> RowBonus:
        return cls(rows, bonus, bonus(rows) if is_whole(len(rows), bonus.count) else None)

    @classmethod
    def nothing(cls, rows: np.ndarray, categories: int) -> RowBonus:
        return cls.of(rows, Bonus.nothing(categories, rows.shape[1]))

    @property
    def count(self) -> int:
        """Categories."""
        return self.bonus.count

    def at(self, places: np.ndarray) -> RowBonus:
        """That of some of the rows."""
        if self.whole is None:
            return RowBonus.of(self.rows[places], self.bonus)
        return RowBonus(self.rows[places], self.bonus, self.whole[places])

    def first(self, columns: int) -> np.ndarray:
        """(rows x columns) of the first categories."""
        if self.whole is not None:
            return self.whole[:, :columns]
        return self.bonus.first(columns)(self.rows)

    def add_to(self, scores: np.ndarray, part: slice) -> None:
        """Add that of a part of the rows to (part x categories) in place."""
        if self.whole is None:
            self.bonus.add_to(scores, self.rows[part])
        else:
            scores += self.whole[part]

    def of_labels(self, labels: np.ndarray) -> np.ndarray:
        """That of each row's own category."""
        if self.whole is not None:
            return self.whole[np.arange(len(labels)), labels]
        out = np.zeros(len(labels), np.float32)
        spoken = np.flatnonzero(labels < self.bonus.spoken)
        for part in blocks(len(spoken), 8 * self.rows.shape[1]):
            some = spoken[part]
            mine = labels[some]
            said = np.einsum("nd,nd->n", self.rows[some], self.bonus.direction[mine])
            out[some] = said + self.bonus.constant[mine]
        return out

    def agrees(self, labels: np.ndarray) -> np.ndarray:
        """Mask of the rows of which the texts alone say the same."""
        out = np.empty(len(labels), bool)
        for part in blocks(len(labels), self.count):
            if self.whole is not None:
                said = self.whole[part]
            else:
                said = np.zeros((part.stop - part.start, self.count), np.float32)
                self.bonus.add_to(said, self.rows[part])
            out[part] = said.argmax(axis=1) == labels[part]
        return out
