"""``assignments.parquet``: one row a sample, in stream order, written as the stream goes by.

Rows go to closed part files as they come. What a method says later about a row on disk is kept in
a log of revisions; at the end parts and revisions are put together, and merged categories get the
id they were merged into. How often parts were closed leaves no trace in the result.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ttgcd.engines.revisions import RevisionLog
from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer, Merged
from ttgcd.methods.base import category_name
from ttgcd.storage.durable import write_atomic, writing
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch

if TYPE_CHECKING:
    import pyarrow

FORMAT = "ttgcd.assignments/1"
ROWS_PER_GROUP = 65_536
#: How the table is written: no id comes twice, so a dictionary of them would only cost time.
WRITTEN: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": [
        *("category", "kind", "name", "batch", "revised"),
        *("coarse", "coarse_name", "fine", "fine_name"),
    ],
}
#: Open rows beyond which they are put on disk although they may still be revised.
MOST_OPEN = ROWS_PER_GROUP
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
_SAID = ("category", "score", "margin", "novelty", "final")


class AssignmentTable:
    """Collects answers and writes them to part files in ``folder``.

    Memory holds at most ``most_open`` rows and a bounded number of revisions.
    """

    def __init__(
        self,
        folder: Path,
        known: Sequence[str],
        rows_per_group: int = ROWS_PER_GROUP,
        most_open: int = MOST_OPEN,
    ) -> None:
        self.folder = folder
        self.known = tuple(known)
        self.rows_per_group = rows_per_group
        self.most_open = most_open
        self.batches = 0
        self.aliases: dict[int, int] = {}
        self._parts: list[tuple[int, str]] = []  # rows and sha256 of each closed part
        self._revisions = RevisionLog(folder)
        self._base = 0  # stream index of the first row in memory
        self._ids: list[str] = []
        self._rows = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}

    @property
    def samples(self) -> int:
        """Rows so far, on disk or not."""
        return self._base + len(self._ids)

    def write(self, batch: Batch | None, rows: Answer) -> None:
        if batch is not None:
            self._arrive(batch)
        self._answer(rows)
        for event in rows.events:
            if isinstance(event, Merged):
                self.aliases[event.category] = event.into
        open_rows = len(self._ids)
        if open_rows >= self.most_open or (
            open_rows >= self.rows_per_group and self._rows["final"][:open_rows].all()
        ):
            self.close_part()

    def _arrive(self, batch: Batch) -> None:
        if batch.start != self.samples:
            raise RuntimeError(f"sample {batch.start} arrives where {self.samples} is due")
        begin, end = len(self._ids), len(self._ids) + len(batch)
        self._ids.extend(batch.ids)
        if end > len(self._rows["category"]):  # doubling: arriving stays linear in all
            room = max(end, 2 * len(self._rows["category"])) - begin
            for name, column in self._rows.items():
                self._rows[name] = np.concatenate([column[:begin], np.zeros(room, column.dtype)])
        number = self.batches + np.arange(len(batch)) // (batch.step or max(1, len(batch)))
        fill = {"category": _UNANSWERED, "first": _UNANSWERED, "batch": number}
        for name in _COLUMNS:
            self._rows[name][begin:end] = fill.get(name, 0)
        self.batches += batch.steps

    def _answer(self, rows: Answer) -> None:
        if len(rows) and (rows.index.min() < 0 or rows.index.max() >= self.samples):
            raise RuntimeError("the method answers for samples that are unknown")
        on_disk = rows.index < self._base
        if on_disk.all():
            self._revisions.add(rows)
            return
        if on_disk.any():
            self._revisions.add(rows.at(on_disk))
            rows = rows.at(~on_disk)
        at = rows.index - self._base
        if self._rows["final"][at].any():
            raise RuntimeError("the method revises rows that it has called final")
        fresh = np.flatnonzero(self._rows["first"][at] == _UNANSWERED)[::-1]
        self._rows["first"][at[fresh]] = rows.category[fresh]  # reversed: the earliest row wins
        for name in _SAID:
            self._rows[name][at] = getattr(rows, name)  # later rows win: they are revisions

    # -- parts --------------------------------------------------------------------------------

    def close_part(self) -> None:
        """Put the rows in memory into a closed part file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        count = len(self._ids)
        if not count:
            return
        rows = {name: pa.array(column[:count]) for name, column in self._rows.items()}
        buffer = io.BytesIO()
        part = pa.table({"id": pa.array(self._ids, pa.string()), **rows})
        pq.write_table(part, buffer, compression="lz4", use_dictionary=False)
        data = buffer.getvalue()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self._part(len(self._parts)), data)
        self._parts.append((count, hashlib.sha256(data).hexdigest()))
        self._base += count
        self._ids = []
        self._rows = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.parquet"

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

    def _read_parts(self) -> Iterator[tuple[int, pyarrow.Table]]:
        """Every part and the stream index of its first row."""
        import pyarrow.parquet as pq

        start = 0
        for number, (count, _) in enumerate(self._parts):
            yield start, pq.read_table(io.BytesIO(self._checked_part(number)))
            start += count

    # -- the end ------------------------------------------------------------------------------

    def finish(self, path: Path) -> None:
        """The stream is over: put parts, revisions and aliases together at ``path``."""
        import pyarrow.parquet as pq

        self.close_part()

        def merge(file: IO[bytes]) -> None:
            with pq.ParquetWriter(file, schema(), **WRITTEN) as writer:
                for group in self._groups():
                    writer.write_table(group, row_group_size=self.rows_per_group)

        with writing(path.parent):
            write_atomic(path, merge)

    def _groups(self) -> Iterator[pyarrow.Table]:
        """All rows in tables of ``rows_per_group`` rows, whatever the sizes of the parts."""
        import pyarrow as pa

        waiting: list[pa.Table] = []
        for start, part in self._read_parts():
            table = self._settled(start, part)
            while table.num_rows:
                room = self.rows_per_group - sum(t.num_rows for t in waiting)
                waiting.append(table.slice(0, room))
                table = table.slice(room)
                if len(waiting[-1]) == room:
                    yield pa.concat_tables(waiting).combine_chunks()
                    waiting = []
        if waiting:
            yield pa.concat_tables(waiting).combine_chunks()

    def _settled(self, start: int, part: pyarrow.Table) -> pyarrow.Table:
        """The last word on the rows of a part, as the file shows them."""
        import pyarrow as pa

        rows = {name: part.column(name).to_numpy().copy() for name in _COLUMNS}
        for said in self._revisions.between(start, start + part.num_rows):
            at = said["index"] - start
            if rows["final"][at].any():
                raise RuntimeError("the method revises rows that it has called final")
            # A row may have gone to disk before it was answered at all.
            new = rows["first"][at] == _UNANSWERED
            rows["first"][at[new]] = said["first"][new]
            for name in _SAID:
                rows[name][at] = said[name]
        unanswered = np.flatnonzero(rows["category"] == _UNANSWERED)
        if len(unanswered):
            sample = part.column("id")[int(unanswered[0])]
            raise RuntimeError(f"the method gave no answer for sample {str(sample)!r}")
        category = resolve_aliases(rows["category"], self.aliases)
        n_known = len(self.known)
        highest = int(category.max(initial=0))
        names = pa.array([category_name(self.known, c) for c in range(highest + 1)], pa.string())
        columns = [
            part.column("id"),
            pa.array(category, pa.int32()),
            pa.array(["known", "novel"]).take(pa.array((category >= n_known).astype(np.int8))),
            names.take(pa.array(category)),
            pa.array(rows["score"]),
            pa.array(rows["margin"]),
            pa.array(rows["batch"], pa.int64()),
            pa.array(category != rows["first"]),
            pa.array(rows["novelty"]),
        ]
        return pa.Table.from_arrays(columns, schema=schema())

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        """Which parts and revisions count; no row stays in memory only."""
        self.close_part()
        values = {
            "parts": [list(part) for part in self._parts],
            "batches": self.batches,
            "base": self._base,
            "aliases": sorted(self.aliases.items()),
            **self._revisions.state().values,
        }
        return State({}, values)

    def load(self, state: State) -> None:
        """Go on from ``state``; later parts, written after it, are removed."""
        values = state.values
        self._parts = [(int(rows), str(digest)) for rows, digest in values["parts"]]
        self.batches = values["batches"]
        self.aliases = {int(merged): int(into) for merged, into in values["aliases"]}
        self._base = values["base"]
        self._ids = []
        self._rows = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}
        self._revisions.load(state)
        for number in range(len(self._parts)):
            self._checked_part(number)
        self.remove_parts(len(self._parts), keep_revisions=True)

    def remove_parts(self, first: int = 0, keep_revisions: bool = False) -> None:
        """Remove part files numbered ``first`` and above, and with them the revisions."""
        keep = {self._part(number).name for number in range(first)}
        with writing(self.folder):
            if self.folder.exists():
                for name in sorted(os.listdir(self.folder)):
                    if name.startswith("part-") and name not in keep:
                        (self.folder / name).unlink()
        if not keep_revisions:
            self._revisions.remove()

    def answered_ids(self) -> Iterator[str]:
        """Ids of all rows so far, in stream order."""
        for _, table in self._read_parts():
            yield from table.column("id").to_pylist()
        yield from self._ids


def resolve_aliases(category: np.ndarray, aliases: dict[int, int]) -> np.ndarray:
    """The category that each id stands for, through any chain of merges."""
    if not aliases:
        return category
    stands_for = np.arange(max(int(category.max(initial=0)), *aliases, *aliases.values()) + 1)
    for merged in aliases:
        into = merged
        while into in aliases:
            into = aliases[into]
        stands_for[merged] = into
    return stands_for[category]


def add_columns(
    path: Path,
    kinds: Mapping[str, pyarrow.DataType],
    make: Callable[[int, pyarrow.Table], Mapping[str, pyarrow.Array]],
) -> None:
    """Give a table on disk further columns, or other values in them, one row group at a time.

    ``make`` is told the number of the first row and the rows of a group.
    """
    import pyarrow.parquet as pq

    def groups() -> Iterator[pyarrow.Table]:
        file, begin = pq.ParquetFile(path), 0
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            yield with_columns(group, kinds, make(begin, group))
            begin += group.num_rows

    def write(file: IO[bytes]) -> None:
        writer: pq.ParquetWriter | None = None
        for group in groups():
            writer = writer or pq.ParquetWriter(file, group.schema, **WRITTEN)
            writer.write_table(group, row_group_size=group.num_rows)
        if writer is not None:
            writer.close()

    with writing(path.parent):
        write_atomic(path, write)


def with_columns(
    table: pyarrow.Table,
    kinds: Mapping[str, pyarrow.DataType],
    values: Mapping[str, pyarrow.Array],
) -> pyarrow.Table:
    """A table with these columns; those that it has keep their place."""
    import pyarrow as pa

    for name, kind in kinds.items():
        at, field = table.schema.get_field_index(name), pa.field(name, kind)
        column = values[name].cast(kind)
        table = (
            table.append_column(field, column) if at < 0 else table.set_column(at, field, column)
        )
    return table


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
