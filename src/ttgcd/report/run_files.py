"""What the files of a run say: the report is drawn from these and from nothing else."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Category

_NUMBERS = ("category", "score", "novelty", "confidence")


class Ids:
    """The ids of all samples in stream order, read from the table where they are asked for: a
    million names would be most of a report's memory."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._path = path
        groups = pq.ParquetFile(path).metadata
        sizes = [groups.row_group(number).num_rows for number in range(groups.num_row_groups)]
        self._ends = np.cumsum([0, *sizes])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __iter__(self) -> Iterator[str]:
        for _, group in self._groups():
            yield from group.to_pylist()

    def _groups(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, Any]]:
        """Ids of the row groups that hold rows from ``begin`` to ``end``, and where they start."""
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self._path)
        for number, start in enumerate(self._ends[:-1].tolist()):
            if self._ends[number + 1] > begin and (end is None or start < end):
                table = file.read_row_group(number, columns=["id"])
                yield start, table.column("id").combine_chunks()

    def of(self, rows: Sequence[int]) -> list[str]:
        """The ids of some rows."""
        import pyarrow as pa

        wanted = np.asarray(rows, np.int64)
        found = np.empty(len(wanted), object)
        order = np.argsort(wanted, kind="stable")
        cuts = np.searchsorted(wanted[order], self._ends)
        for start, group in self._groups(
            int(wanted.min(initial=0)), int(wanted.max(initial=-1)) + 1
        ):
            number = int(np.searchsorted(self._ends, start))
            mine = order[cuts[number] : cuts[number + 1]]
            found[mine] = group.take(pa.array(wanted[mine] - start)).to_pylist()
        return list(found)

    def places(self, names: Iterable[str]) -> dict[str, int]:
        """The row of each of these ids that is in the table."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = list(dict.fromkeys(names))
        found: dict[str, int] = {}
        for begin, group in self._groups():
            which = pc.index_in(group, value_set=pa.array(wanted, group.type))
            for row in pc.indices_nonzero(which.is_valid()).to_pylist():
                found.setdefault(wanted[which[row].as_py()], begin + row)
        return found

    def folders(self, begin: int, end: int) -> Counter[str]:
        """How many of the samples from ``begin`` to ``end`` have their ids in which folder."""
        import pyarrow.compute as pc

        counts: Counter[str] = Counter()
        for start, group in self._groups(begin, end):
            part = group.slice(
                max(0, begin - start), min(end - start, len(group)) - max(0, begin - start)
            )
            # What stands before the last slash, the slash with it; nothing where there is none.
            folder = pc.replace_substring_regex(part, "[^/]*$", "")
            for entry in pc.value_counts(folder).to_pylist():
                counts[entry["values"].removesuffix("/")] += entry["counts"]
        return counts


@dataclass(frozen=True)
class RunFiles:
    """The files of a finished run, read once.

    Columns of assignments.parquet are arrays in stream order; one that the file does not have is
    absent from ``columns``.
    """

    out: Path
    record: dict[str, Any]
    categories: tuple[Category, ...]
    hidden: frozenset[int]  # categories that an edit put out of sight
    ids: Ids
    columns: dict[str, np.ndarray]
    rejected: list[tuple[str, str]]
    log: bytes = b""  # edits.jsonl: what the user has changed so far

    @classmethod
    def read(cls, out: Path) -> RunFiles:
        """Read OUT/run.json, categories.json, assignments.parquet and rejected.csv."""
        record, categories = _json(out / "run.json"), _json(out / "categories.json")
        ids, columns = _assignments(out / "assignments.parquet")
        return cls(
            out=out,
            record=record,
            categories=tuple(Category.from_json(c) for c in categories["categories"]),
            hidden=frozenset(c["id"] for c in categories["categories"] if c.get("hidden")),
            ids=ids,
            columns=columns,
            rejected=_rejected(out / "rejected.csv"),
            log=(out / "edits.jsonl").read_bytes() if (out / "edits.jsonl").exists() else b"",
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def category(self) -> np.ndarray:
        return self.columns["category"]

    @property
    def score(self) -> np.ndarray:
        return self.columns["score"]

    @cached_property
    def n_known(self) -> int:
        return sum(c.kind == "known" for c in self.categories)

    @property
    def names_given(self) -> bool:
        """Whether any class was known by name when the run began; else what was found are groups,
        and none of them is new."""
        return bool((self.record.get("settings") or {}).get("known", True))

    @cached_property
    def counts(self) -> dict[int, int]:
        """Samples per category id, of the categories that are in the table."""
        width = int(self.category.max(initial=0)) + 1
        parts = (np.bincount(self.category[rows], minlength=width) for rows in self.stretches())
        counts = sum(parts, np.zeros(width, np.int64))
        return {int(c): int(counts[c]) for c in np.flatnonzero(counts)}

    def standing(self) -> list[Category]:
        """Novel categories but those that the method itself gave up, which are no kind any more."""
        novel = [c for c in self.categories if c.kind == "novel" and c.merged_into is None]
        return [c for c in novel if c.active is not False or c.id in self.counts]

    @cached_property
    def is_novel(self) -> np.ndarray:
        """Whether each sample was put into a novel category."""
        novel = np.zeros(int(self.category.max(initial=0)) + 1, bool)
        novel[[c.id for c in self.categories if c.kind == "novel" and c.id < len(novel)]] = True
        return np.concatenate(
            [np.zeros(0, bool), *(novel[self.category[r]] for r in self.stretches())]
        )

    def stretches(self) -> Iterator[slice]:
        """All rows in pieces: numpy works with wider copies of narrow columns."""
        return (slice(begin, begin + 65_536) for begin in range(0, len(self), 65_536))

    @cached_property
    def warmup(self) -> int:
        """How many samples the method gathered before it began; 0 if it does not say."""
        config = self.record.get("settings", {}).get("config", {})
        given = config.get("warmup")
        return min(int(given), len(self)) if isinstance(given, (int, float)) else 0

    @property
    def calibrated(self) -> bool:
        """Whether the column confidence is the probability that an answer is right: without a name
        there is nothing to be right about."""
        return "confidence" in self.columns and self.n_known > 0

    @cached_property
    def doubt(self) -> np.ndarray:
        """How doubtful each answer is, 0 (sure) to 1.

        One minus the confidence where the run has one; else by the gap between the best known and
        the best novel prototype (between the two best groups where no name is known), relative to
        the gap that 95% of the samples stay below.
        """
        if self.calibrated:
            sure = self.columns["confidence"].copy()
            np.nan_to_num(sure, copy=False)
            return np.clip(np.subtract(1.0, sure, out=sure), 0.0, 1.0, out=sure)
        gap = np.abs(self.columns.get("novelty", np.zeros(len(self))))
        if not gap.any():  # the method does not compare: what is left is how well a sample fits
            gap = self.score - self.score.min(initial=0.0)
        widest = float(np.quantile(gap, 0.95)) if len(gap) else 0.0
        return 1.0 - np.clip(gap / max(widest, 1e-9), 0.0, 1.0)

    @property
    def edits(self) -> int:
        """Lines of the log behind the first, which names its format."""
        return max(0, self.log.count(b"\n") - 1)

    @property
    def health(self) -> dict[str, Any]:
        return self.record.get("health") or {}

    @property
    def scores(self) -> dict[str, Any] | None:
        """Percent, as ``ttgcd evaluate`` prints them; None when no labels were given."""
        return self.record.get("scores")


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read {str(path)!r} ({error}): is its folder the output of a finished run?"
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"{str(path)!r} does not hold what a run writes there")
    return found


def _assignments(path: Path) -> tuple[Ids, dict[str, np.ndarray]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        there = [name for name in _NUMBERS if name in file.schema_arrow.names]
        kinds = {name: file.schema_arrow.field(name).type.to_pandas_dtype() for name in there}
        columns = {name: np.empty(file.metadata.num_rows, kinds[name]) for name in there}
        begin = 0
        for number in range(file.num_row_groups):  # never the whole table twice
            group = file.read_row_group(number, columns=there)
            for name in there:
                columns[name][begin : begin + group.num_rows] = group.column(name).to_numpy()
            begin += group.num_rows
        return Ids(path), columns
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {str(path)!r} ({error}): run discover again") from None


def _rejected(path: Path) -> list[tuple[str, str]]:
    """Ids and reasons; a run that set nothing aside may have no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        return [(row[0], row[1]) for row in list(csv.reader(file))[1:] if len(row) >= 2]
