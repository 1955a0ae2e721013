"""What words make of a partition: each novel category chooses its own and is clustered again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.calibration import Standard
from ttgcd.prototypes.partition import Partition, group_sums, lloyd
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.text_evidence import Bonus, best_words, known_bonus, word_bonus

#: Rounds in which novel categories choose their words and are clustered again.
WORD_ROUNDS, WORD_STEPS = 3, 10


@dataclass(frozen=True)
class Spoken:
    """A partition whose novel categories have chosen words (places), the bonus with theirs, and
    the share of the novel categories' samples of which the texts alone say the same: 1 where no
    text speaks for them."""

    partition: Partition
    bonus: Bonus
    chosen: np.ndarray
    borne_out: float


@dataclass(frozen=True)
class Listener:
    """Clusters ``mapped`` (f of the ``rows``) with what texts say: ``names`` of the known classes,
    and ``words`` for ``novel`` other ones; ``weight`` is that of their bonus."""

    rows: np.ndarray
    mapped: np.ndarray
    names: Standard
    words: Standard
    novel: int
    weight: float
    bonus: Bonus  # that of the known names
    added: RowBonus

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        mapped: np.ndarray,
        names: Standard,
        words: Standard,
        novel: int,
        weight: float,
    ) -> Listener:
        bonus = known_bonus(names, weight, novel)
        return cls(rows, mapped, names, words, novel, weight, bonus, RowBonus.of(rows, bonus))

    @property
    def n_known(self) -> int:
        return len(self.names.texts)

    @property
    def speaking(self) -> bool:
        """Whether there are words that can be trusted, and somebody to speak for."""
        return bool(len(self.words.texts) and self.novel and self.weight > 0)

    def cluster(self, centres: np.ndarray) -> Spoken:
        """Lloyd steps from these centres; then novel categories choose their words and are
        clustered again, in turns."""
        found = lloyd(self.mapped, centres, self.added, self.n_known, self.weight)
        if not self.speaking:
            return Spoken(found, self.bonus, np.zeros((self.novel, 0), np.int64), 1.0)
        count = len(found.centres)
        for _ in range(WORD_ROUNDS):
            size = np.maximum(1, np.bincount(found.labels, minlength=count))[:, None]
            means = group_sums(self.rows, found.labels, count) / size
            chosen = best_words(self.words, means[self.n_known :])
            bonus = word_bonus(self.bonus, self.words, chosen, self.rows, self.weight)
            added = RowBonus.of(self.rows, bonus)
            found = lloyd(self.mapped, found.centres, added, self.n_known, self.weight, WORD_STEPS)
        novel = found.labels >= self.n_known
        same = added.at(novel).agrees(found.labels[novel])
        return Spoken(found, bonus, chosen, float(same.mean()) if novel.any() else 0.0)
