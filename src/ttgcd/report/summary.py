"""What the report needs to know about a stream, in memory that does not grow with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.report.ranking import Ranking, signatures
from ttgcd.report.sample import Sample, priorities
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch

_FORMAT = 1
_PARTS = ("sample", "typical", "atypical")


class StreamSummary:
    """A sink: counts, the course of the stream, a sample for the map, exemplars.

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
        atypical: int = 4,
        bins: int = 64,
        waiting: int = 20_000,
    ) -> None:
        if bins < 2 or bins % 2:
            raise ValueError(f"bins must be even and 2 or more, got {bins}")
        self.n_known, self.n_novel = n_known, n_novel
        self._config = {
            "n_known": n_known,
            "n_novel": n_novel,
            "seed": seed,
            "map_points": map_points,
            "exemplars": exemplars,
            "atypical": atypical,
            "bins": bins,
            "waiting": waiting,
        }
        self._seed, self._most_waiting = seed, waiting
        categories = n_known + n_novel
        self.seen = 0
        self._width = 1  # samples a bin; doubles when the stream outgrows the bins
        self._table = np.zeros((bins, categories), np.int64)
        self._waiting: dict[int, tuple[str, int]] = {}  # index -> id, position
        self._sample = Sample(map_points, seed)
        self._typical = Ranking(categories, exemplars)
        self._atypical = Ranking(categories, atypical)

    # -- the stream ---------------------------------------------------------------------------

    def write(self, batch: Batch | None, rows: Answer) -> None:
        """Take the answer to a batch; ``batch`` is None for what a method says at the end."""
        rows = _last_word(rows)
        if len(rows):
            low, high = int(rows.category.min()), int(rows.category.max())
            if low < 0:
                raise ValueError(f"category {low} is below 0")
            if high >= self._table.shape[1]:
                self._grow(high + 1)
        final = rows.at(np.asarray(rows.final, bool))
        if batch is not None and len(batch):
            self._arrive(batch, final.index)
        self._sample.answer(rows.index, rows.category, rows.features)
        if len(final):
            self._count(final)
            self._rank(final, batch)
        self._forget()

    def _grow(self, categories: int) -> None:
        """A category beyond those announced was opened."""
        more = np.zeros((len(self._table), categories - self._table.shape[1]), np.int64)
        self._table = np.concatenate([self._table, more], axis=1)
        for ranking in (self._typical, self._atypical):
            ranking.grow(categories)

    def _arrive(self, batch: Batch, settled: np.ndarray) -> None:
        index = np.arange(batch.start, batch.start + len(batch))
        self.seen = max(self.seen, batch.start + len(batch))
        self._sample.offer(index, batch.ids, batch.positions)
        for row in np.flatnonzero(~np.isin(index, settled)).tolist():
            self._waiting[batch.start + row] = (batch.ids[row], int(batch.positions[row]))

    def _count(self, final: Answer) -> None:
        while final.index.max() >= len(self._table) * self._width:
            merged = self._table[0::2] + self._table[1::2]
            self._table = np.concatenate([merged, np.zeros_like(merged)])
            self._width *= 2
        np.add.at(self._table, (final.index // self._width, final.category), 1)

    def _rank(self, final: Answer, batch: Batch | None) -> None:
        begin, end = (0, 0) if batch is None else (batch.start, batch.start + len(batch))
        named: dict[int, tuple[str, int]] = {}
        for i in final.index[(final.index < begin) | (final.index >= end)].tolist():
            if (entry := self._waiting.pop(i, None)) is not None:
                named[i] = entry
        # A novel prototype begins as a copy of one sample (Eq. 6-7): that sample's score of 1 is
        # no sign of being typical, so it comes behind all others.
        seeds = (final.category >= self.n_known) & (final.score > 1.0 - 1e-4)
        typical = np.where(seeds, final.score - 2.0, final.score)
        # Few samples of a long stream can still make it; only those are looked at closely.
        likely = self._typical.promising(final.category, typical)
        likely |= self._atypical.promising(final.category, -final.score)
        chosen = []
        for row in np.flatnonzero(likely).tolist():
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
        for ranking, key in ((self._typical, typical[chosen]), (self._atypical, -rows.score)):
            ranking.offer(rows.category, key, rows.index, ids, np.array(positions), signature)

    def _forget(self) -> None:
        """Bound the names of waiting samples."""
        excess = len(self._waiting) - self._most_waiting
        if excess > 0:
            index = np.fromiter(self._waiting, np.int64)
            order = np.argsort(priorities(index, self._seed))
            for i in index[order[-excess:]].tolist():
                del self._waiting[i]

    # -- what it knows ------------------------------------------------------------------------

    @property
    def counts(self) -> np.ndarray:
        """Samples per category (K + L,)."""
        return self._table.sum(axis=0)

    @property
    def counted(self) -> int:
        """Samples with a final answer."""
        return int(self._table.sum())

    def timeline(self, least: int = 64) -> dict[str, np.ndarray]:
        """The course of the stream in equal steps of at least ``least`` samples.

        ``start`` and ``end`` (stream indexes), ``known`` and ``novel`` (counts), ``entropy`` of the
        category histogram in nats, ``categories`` in use. Steps without an answer are left out.
        """
        factor = 1
        while self._width * factor < least and factor < len(self._table):
            factor *= 2
        bins = len(self._table)
        padded = np.zeros((-(-bins // factor) * factor, self._table.shape[1]), np.int64)
        padded[:bins] = self._table
        table = padded.reshape(-1, factor, self._table.shape[1]).sum(axis=1)
        start = np.arange(len(table)) * factor * self._width
        used = table.sum(axis=1) > 0
        table, start = table[used], start[used]
        end = np.minimum(start + factor * self._width, max(self.seen, 1))
        if len(table) > 1 and 2 * table[-1].sum() < table[-2].sum():
            # A few last samples make no step of their own: their entropy would seem to fall.
            table = np.concatenate([table[:-2], table[-2:].sum(axis=0, keepdims=True)])
            start, end = start[:-1], np.append(end[:-2], end[-1:])
        return {
            "start": start,
            "end": end,
            "known": table[:, : self.n_known].sum(axis=1),
            "novel": table[:, self.n_known :].sum(axis=1),
            "entropy": _entropy(table),
            "categories": (table > 0).sum(axis=1),
        }

    def entropy(self) -> float:
        """Entropy of all assignments in nats; its exponential is how many categories an even
        spread would need."""
        return float(_entropy(self.counts[None])[0])

    def exemplars(self, category: int) -> list[dict[str, Any]]:
        """The most typical samples, best first: index, id, position, score (of a seed less 2)."""
        return self._typical.of(category)

    def atypical(self, category: int) -> list[dict[str, Any]]:
        """The samples with the lowest score, lowest first."""
        return self._atypical.of(category, sign=-1.0)

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
        arrays: dict[str, np.ndarray] = {"table": self._table.copy()}
        values: dict[str, Any] = {
            "format": _FORMAT,
            "config": dict(self._config),
            "seen": self.seen,
            "width": self._width,
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
        self.seen, self._width = values["seen"], values["width"]
        self._table = np.array(arrays["table"])
        self._waiting = {i: (name, at) for i, name, at in values["waiting"]}
        for part in _PARTS:
            prefix = f"{part}/"
            part_arrays = {
                k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)
            }
            getattr(self, f"_{part}").load(part_arrays, values[part])


def _last_word(rows: Answer) -> Answer:
    """One row a sample: the last one given."""
    _, first = np.unique(rows.index[::-1], return_index=True)
    if len(first) == len(rows):
        return rows
    return rows.at(np.sort(len(rows) - 1 - first))


def _entropy(table: np.ndarray) -> np.ndarray:
    """Entropy in nats of every row of counts; 0 for an empty row."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    return np.maximum(-(share * logs).sum(axis=1), 0.0)
