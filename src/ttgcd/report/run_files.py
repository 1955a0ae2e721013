"""What the files of a run say: the report is drawn from these and from nothing else."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Category

_NUMBERS = ("category", "score", "margin", "novelty", "confidence")


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
    ids: list[str]
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

    @cached_property
    def counts(self) -> dict[int, int]:
        """Samples per category id, of the categories that are in the table."""
        found, counts = np.unique(self.category, return_counts=True)
        return {int(c): int(n) for c, n in zip(found, counts)}

    @cached_property
    def is_novel(self) -> np.ndarray:
        """Whether each sample was put into a novel category."""
        novel = [c.id for c in self.categories if c.kind == "novel"]
        return np.isin(self.category, novel)

    @cached_property
    def warmup(self) -> int:
        """How many samples the method gathered before it began; 0 if it does not say."""
        config = self.record.get("settings", {}).get("config", {})
        given = config.get("warmup")
        return min(int(given), len(self)) if isinstance(given, (int, float)) else 0

    @cached_property
    def doubt(self) -> np.ndarray:
        """How doubtful each answer is, 0 (sure) to 1.

        One minus the confidence where the run has one; else by the gap between the best known and
        the best novel prototype, relative to the gap that 95% of the samples stay below.
        """
        if "confidence" in self.columns:
            return np.clip(1.0 - np.nan_to_num(self.columns["confidence"]), 0.0, 1.0)
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


def _assignments(path: Path) -> tuple[list[str], dict[str, np.ndarray]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {str(path)!r} ({error}): run discover again") from None
    there = [name for name in _NUMBERS if name in table.column_names]
    columns = {name: table.column(name).to_numpy() for name in there}
    return table.column("id").to_pylist(), columns


def _rejected(path: Path) -> list[tuple[str, str]]:
    """Ids and reasons; a run that set nothing aside may have no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        return [(row[0], row[1]) for row in list(csv.reader(file))[1:] if len(row) >= 2]
