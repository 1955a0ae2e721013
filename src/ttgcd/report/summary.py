"""What the report needs to know about a stream, in memory that does not grow with it."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.report.course import entropy
from ttgcd.report.ranking import Ranking, is_seed, signatures
from ttgcd.report.sample import Sample, priorities
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch

_FORMAT = 2
_PARTS = ("sample", "typical")


class StreamSummary:
    """A sink: counts, a sample for the map, exemplars.

    Only rows marked ``final`` are counted, each once; provisional rows wait, so a method that
    answers after the warm-up or at the end is counted by its last word. The map follows every
    revision. Names of waiting samples are kept for at most ``waiting`` of them (a seeded sample
    if there are more): exemplars of a method that answers only at the end come from those.
    """

    def __init__(
        self,
        n_known: int,
        n_novel: int,
        seed: int = 0,
        map_points: int = 2000,
        exemplars: int = 12,
        waiting: int = 20_000,
    ) -> None:
        self.n_known, self.n_novel = n_known, n_novel
        self._config = {
            "n_known": n_known,
            "n_novel": n_novel,
            "seed": seed,
            "map_points": map_points,
            "exemplars": exemplars,
            "waiting": waiting,
        }
        self._seed, self._most_waiting = seed, waiting
        categories = n_known + n_novel
        self.seen = 0
        self.counts = np.zeros(categories, np.int64)  # samples per category
        self._waiting: dict[int, tuple[str, int]] = {}  # index -> id, position
        # Minus priority and index of those that wait, the next one to forget first; and of some
        # that no longer do.
        self._forgettable: list[tuple[int, int]] = []
        self._sample = Sample(map_points, seed)
        self._typical = Ranking(categories, exemplars)

    # -- the stream ---------------------------------------------------------------------------

    def write(self, batch: Batch | None, rows: Answer) -> None:
        """Take the answer to a batch; ``batch`` is None for what a method says at the end."""
        rows = _last_word(rows)
        if len(rows):
            low, high = int(rows.category.min()), int(rows.category.max())
            if low < 0:
                raise ValueError(f"category {low} is below 0")
            if high >= len(self.counts):
                self._grow(high + 1)
        settled = np.asarray(rows.final, bool)
        final = rows if settled.all() else rows.at(settled)
        if batch is not None and len(batch):
            self._arrive(batch, final.index)
        self._sample.answer(rows.index, rows.category, rows.features)
        if len(final):
            self.counts += np.bincount(final.category, minlength=len(self.counts))
            self._rank(final, batch)

    def _grow(self, categories: int) -> None:
        """A category beyond those announced was opened."""
        more = np.zeros(categories - len(self.counts), np.int64)
        self.counts = np.concatenate([self.counts, more])
        self._typical.grow(categories)

    def _arrive(self, batch: Batch, settled: np.ndarray) -> None:
        index = np.arange(batch.start, batch.start + len(batch))
        self.seen = max(self.seen, batch.start + len(batch))
        self._sample.offer(index, batch.ids, batch.positions)
        here = settled[(settled >= batch.start) & (settled < batch.start + len(batch))]
        open_ones = np.ones(len(batch), bool)
        open_ones[here - batch.start] = False
        if open_ones.any():
            self._wait(batch, np.flatnonzero(open_ones))

    def _wait(self, batch: Batch, rows: np.ndarray) -> None:
        """Remember names of samples that are not answered for good: those of least priority."""
        if self._most_waiting == 0:
            return
        priority = priorities(batch.start + rows, self._seed)
        if len(self._waiting) >= self._most_waiting:
            # Most rows of a long stream would be forgotten at once.
            likely = priority < np.uint64(-self._forgettable[0][0])
            rows, priority = rows[likely], priority[likely]
        for row, its in zip(rows.tolist(), priority.tolist()):
            self._waiting[batch.start + row] = (batch.ids[row], int(batch.positions[row]))
            heapq.heappush(self._forgettable, (-its, batch.start + row))
            while len(self._waiting) > self._most_waiting:
                self._waiting.pop(heapq.heappop(self._forgettable)[1], None)

    def _were_waiting(self, index: np.ndarray) -> np.ndarray:
        """The samples among these whose names may be remembered: few of a long stream."""
        if not self._waiting:
            return index[:0]
        return index[priorities(index, self._seed) <= np.uint64(-self._forgettable[0][0])]

    def _rank(self, final: Answer, batch: Batch | None) -> None:
        begin, end = (0, 0) if batch is None else (batch.start, batch.start + len(batch))
        named: dict[int, tuple[str, int]] = {}
        before = final.index[(final.index < begin) | (final.index >= end)]
        for i in self._were_waiting(before).tolist():
            if (entry := self._waiting.pop(i, None)) is not None:
                named[i] = entry
        if len(self._forgettable) > 2 * len(self._waiting) + 1024:
            self._forgettable = [entry for entry in self._forgettable if entry[1] in self._waiting]
            heapq.heapify(self._forgettable)
        # A novel prototype begins as a copy of one sample (Eq. 6-7): that sample's score of 1 is
        # no sign of being typical, so it comes behind all others.
        seeds = (final.category >= self.n_known) & is_seed(final.score)
        typical = np.where(seeds, final.score - 2.0, final.score)
        # Few samples of a long stream can still make it; only those are looked at closely.
        likely = self._typical.promising(final.category, typical)
        chosen = []
        rows_of = np.flatnonzero(likely)
        if batch is None:  # without a name there is nothing to show
            rows_of = rows_of[np.isin(final.index[rows_of], np.fromiter(named, np.int64))]
        for row in rows_of.tolist():
            i = int(final.index[row])
            if batch is not None and begin <= i < end:
                named[i] = (batch.ids[i - begin], int(batch.positions[i - begin]))
            if i in named:
                chosen.append(row)
        if not chosen:
            return
        rows = final.at(np.array(chosen))
        ids, positions = zip(*(named[i] for i in rows.index.tolist()))
        if rows.features is None:
            signature = np.zeros(len(rows), np.uint64)
        else:
            signature = signatures(rows.features, self._seed)
        self._typical.offer(
            rows.category, typical[chosen], rows.index, ids, np.array(positions), signature
        )

    # -- what it knows ------------------------------------------------------------------------

    def entropy(self) -> float:
        """Entropy of all assignments in nats; its exponential is how many categories an even
        spread would need."""
        return float(entropy(self.counts[None])[0])

    def exemplars(self, category: int) -> list[dict[str, Any]]:
        """The most typical samples, best first: index, id, position, score (of a seed less 2)."""
        return self._typical.of(category)

    def map_sample(self) -> dict[str, Any]:
        """Sampled rows with features, in stream order: index, id, category, features."""
        sample = self._sample
        slots = np.flatnonzero(sample.featured & (sample.category >= 0))
        slots = slots[np.argsort(sample.index[slots])]
        features = sample.features[slots] if sample.features is not None else np.zeros((0, 0))
        return {
            "index": sample.index[slots],
            "id": [sample.ids[slot] for slot in slots],
            "category": sample.category[slots],
            "features": features.astype(np.float32),
        }

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        """Everything needed to go on, as plain arrays and JSON values."""
        arrays: dict[str, np.ndarray] = {"counts": self.counts.copy()}
        values: dict[str, Any] = {
            "format": _FORMAT,
            "config": dict(self._config),
            "seen": self.seen,
            "waiting": [[i, name, at] for i, (name, at) in self._waiting.items()],
        }
        for part in _PARTS:
            part_arrays, values[part] = getattr(self, f"_{part}").state()
            arrays.update({f"{part}/{name}": array for name, array in part_arrays.items()})
        return State(arrays, values)

    def load(self, state: State) -> None:
        """Go on from ``state``."""
        arrays, values = state
        if values.get("format") != _FORMAT or values["config"] != self._config:
            raise InputError("the saved report summary was made by another version or task")
        self.seen = values["seen"]
        self.counts = np.array(arrays["counts"])
        self._waiting = {i: (name, at) for i, name, at in values["waiting"]}
        waiting = np.fromiter(self._waiting, np.int64, len(self._waiting))
        ranks = priorities(waiting, self._seed).tolist()
        self._forgettable = [(-its, i) for its, i in zip(ranks, waiting.tolist())]
        heapq.heapify(self._forgettable)
        for part in _PARTS:
            prefix = f"{part}/"
            part_arrays = {
                k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)
            }
            getattr(self, f"_{part}").load(part_arrays, values[part])


def _last_word(rows: Answer) -> Answer:
    """One row a sample: the last one given."""
    if (rows.index[1:] > rows.index[:-1]).all():
        return rows
    _, first = np.unique(rows.index[::-1], return_index=True)
    if len(first) == len(rows):
        return rows
    return rows.at(np.sort(len(rows) - 1 - first))
