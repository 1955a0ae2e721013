"""``assignments.parquet``: one row a sample, in stream order, written as the stream goes by.

Rows wait in memory while the method may still revise them. Settled rows go to closed part files;
at the end the parts are put together. How often parts were closed leaves no trace in the result.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import category_name
from ttgcd.storage.durable import write_atomic, writing
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch

if TYPE_CHECKING:
    import pyarrow

FORMAT = "ttgcd.assignments/1"
ROWS_PER_GROUP = 65_536
_UNANSWERED = -1
_COLUMNS: dict[str, Any] = {
    "category": np.int64,
    "first": np.int64,  # the category given on arrival
    "score": np.float32,
    "margin": np.float32,
    "novelty": np.float32,
    "final": np.bool_,
    "batch": np.int64,
}


class AssignmentTable:
    """Collects answers and writes them to part files in ``folder``.

    Memory holds the rows that are not settled plus at most ``rows_per_group`` settled ones.
    """

    def __init__(
        self, folder: Path, known: Sequence[str], rows_per_group: int = ROWS_PER_GROUP
    ) -> None:
        self.folder = folder
        self.known = tuple(known)
        self.rows_per_group = rows_per_group
        self.batches = 0
        self._parts: list[tuple[int, str]] = []  # rows and sha256 of each closed part
        self._base = 0  # stream index of the first row in memory
        self._ids: list[str] = []
        self._rows = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}

    @property
    def samples(self) -> int:
        """Rows so far, settled or not."""
        return self._base + len(self._ids)

    def write(self, batch: Batch | None, rows: Answer) -> None:
        if batch is not None:
            self._arrive(batch)
        self._answer(rows)
        if self._settled() >= self.rows_per_group:
            self.close_part()

    def _arrive(self, batch: Batch) -> None:
        if batch.start != self.samples:
            raise RuntimeError(f"sample {batch.start} arrives where {self.samples} is due")
        self._ids.extend(batch.ids)
        fill = {"category": _UNANSWERED, "first": _UNANSWERED, "batch": self.batches}
        for name, dtype in _COLUMNS.items():
            new = np.full(len(batch), fill.get(name, 0), dtype)
            self._rows[name] = np.concatenate([self._rows[name], new])
        self.batches += 1

    def _answer(self, rows: Answer) -> None:
        at = rows.index - self._base
        if len(at) and (at.min() < 0 or at.max() >= len(self._ids)):
            raise RuntimeError("the method answers for samples that are settled or unknown")
        if self._rows["final"][at].any():
            raise RuntimeError("the method revises rows that it has called final")
        fresh = np.flatnonzero(self._rows["first"][at] == _UNANSWERED)[::-1]
        self._rows["first"][at[fresh]] = rows.category[fresh]  # reversed: the earliest row wins
        for name in ("category", "score", "margin", "novelty", "final"):
            self._rows[name][at] = getattr(rows, name)  # later rows win: they are revisions

    def _settled(self) -> int:
        """Rows at the front that will not change any more."""
        final = self._rows["final"]
        return len(final) if final.all() else int(final.argmin())

    # -- parts --------------------------------------------------------------------------------

    def close_part(self) -> None:
        """Put the settled rows into a closed part file."""
        count = self._settled()
        if count:
            self._write_part(count)

    def _write_part(self, count: int) -> None:
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(self._arrow(count), buffer, compression="zstd")
        data = buffer.getvalue()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self._part(len(self._parts)), data)
        self._parts.append((count, hashlib.sha256(data).hexdigest()))
        self._base += count
        del self._ids[:count]
        self._rows = {name: column[count:].copy() for name, column in self._rows.items()}

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.parquet"

    def _arrow(self, count: int) -> pyarrow.Table:
        import pyarrow as pa

        rows = {name: column[:count] for name, column in self._rows.items()}
        category, n_known = rows["category"], len(self.known)
        unanswered = np.flatnonzero(category == _UNANSWERED)
        if len(unanswered):
            sample = self._ids[unanswered[0]]
            raise RuntimeError(f"the method gave no answer for sample {sample!r}")
        kinds = np.where(category < n_known, "known", "novel")
        names = [category_name(self.known, c) for c in category.tolist()]
        columns = [
            pa.array(self._ids[:count], pa.string()),
            pa.array(category, pa.int32()),
            pa.array(kinds, pa.string()),
            pa.array(names, pa.string()),
            pa.array(rows["score"]),
            pa.array(rows["margin"]),
            pa.array(rows["batch"], pa.int64()),
            pa.array(category != rows["first"]),
            pa.array(rows["novelty"]),
        ]
        return pa.Table.from_arrays(columns, schema=schema())

    # -- the end ------------------------------------------------------------------------------

    def finish(self, path: Path) -> None:
        """The stream is over: every row is settled. Put the parts together at ``path``."""
        import pyarrow.parquet as pq

        if self._ids:
            self._write_part(len(self._ids))

        def merge(file: IO[bytes]) -> None:
            with pq.ParquetWriter(file, schema(), compression="zstd") as writer:
                for group in self._groups():
                    writer.write_table(group, row_group_size=self.rows_per_group)

        with writing(path.parent):
            write_atomic(path, merge)

    def _groups(self) -> Iterator[pyarrow.Table]:
        """All rows in tables of ``rows_per_group`` rows, whatever the sizes of the parts."""
        import pyarrow as pa

        waiting: list[pa.Table] = []
        for table in self._read_parts():
            while table.num_rows:
                room = self.rows_per_group - sum(t.num_rows for t in waiting)
                waiting.append(table.slice(0, room))
                table = table.slice(room)
                if len(waiting[-1]) == room:
                    yield pa.concat_tables(waiting).combine_chunks()
                    waiting = []
        if waiting:
            yield pa.concat_tables(waiting).combine_chunks()

    def _read_parts(self) -> Iterator[pyarrow.Table]:
        import pyarrow.parquet as pq

        for number in range(len(self._parts)):
            yield pq.read_table(io.BytesIO(self._checked_part(number)), schema=schema())

    def _checked_part(self, number: int) -> bytes:
        path = self._part(number)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(
                f"cannot read {str(path)!r}: {error.strerror}. Start again with `overwrite=True`"
            ) from None
        if hashlib.sha256(data).hexdigest() != self._parts[number][1]:
            raise InputError(f"{str(path)!r} is damaged. Start again with `overwrite=True`")
        return data

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        """What is not in closed parts, and which parts count."""
        values = {
            "parts": [list(part) for part in self._parts],
            "batches": self.batches,
            "base": self._base,
            "ids": list(self._ids),
        }
        return State(dict(self._rows), values)

    def load(self, state: State) -> None:
        """Go on from ``state``; later parts, written after it, are removed."""
        values = state.values
        self._parts = [(int(rows), str(digest)) for rows, digest in values["parts"]]
        self.batches = values["batches"]
        self._base = values["base"]
        self._ids = list(values["ids"])
        self._rows = {name: np.array(state.arrays[name], dtype) for name, dtype in _COLUMNS.items()}
        for number in range(len(self._parts)):
            self._checked_part(number)
        self.remove_parts(len(self._parts))

    def remove_parts(self, first: int = 0) -> None:
        """Remove part files numbered ``first`` and above."""
        keep = {self._part(number).name for number in range(first)}
        with writing(self.folder):
            if self.folder.exists():
                for name in sorted(os.listdir(self.folder)):
                    if name.startswith("part-") and name not in keep:
                        (self.folder / name).unlink()

    def answered_ids(self) -> Iterator[str]:
        """Ids of all rows so far, in stream order."""
        for table in self._read_parts():
            yield from table.column("id").to_pylist()
        yield from self._ids


def schema() -> pyarrow.Schema:
    """Columns of ``assignments.parquet``."""
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("category", pa.int32()),
            ("kind", pa.string()),
            ("name", pa.string()),
            ("score", pa.float32()),
            ("margin", pa.float32()),
            ("batch", pa.int64()),
            ("revised", pa.bool_()),
            ("novelty", pa.float32()),
        ],
        metadata={"ttgcd.format": FORMAT},
    )
