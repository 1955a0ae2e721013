"""The edits of a log put on top of what a run answered: a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.edits.log import active
from ttgcd.discovery.edits.records import Edit
from ttgcd.errors import InputError
from ttgcd.prototypes.confidence import Rows
from ttgcd.prototypes.teaching import follow

if TYPE_CHECKING:
    import pyarrow

#: Ids of categories made by a split: this plus the number of the edit. A run that goes on numbers
#: its own new categories from below and never gets here.
FIRST_SPLIT_ID = 1_000_000
_EXEMPLARS = 12

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Replayed:
    """Rows and categories after all edits; ``unapplied`` are edits that no longer apply, by number,
    with the reason: they stay in the log and count again when they can."""

    assignments: pyarrow.Table
    categories: list[dict[str, Any]]
    unapplied: dict[int, str]


def apply(
    edits: Sequence[Edit],
    assignments: pyarrow.Table,
    categories: Records,
    features: Rows | None = None,
    promoted: int = 0,
) -> Replayed:
    """Put ``edits`` (a whole log, undos included) on top of a run's own rows and categories.

    ``assignments`` has the columns of assignments.parquet, ``categories`` are the records of
    categories.json. With ``features``, one unit row an image, the neighbours of what was corrected
    follow (``ttgcd.prototypes.teaching``). The first ``promoted`` edits were made on an earlier
    run: what was named there is a known class here. Nothing given is changed. Without an edit that
    counts rows and categories come back as they are.
    """
    counting = active(edits)
    if not counting:
        return Replayed(assignments, [dict(record) for record in categories], {})
    books = _Books(assignments, categories)
    unapplied: dict[int, str] = {}
    earlier = [edit for edit in counting if edit.number <= promoted]
    for place, edit in enumerate(counting):
        if place == len(earlier):
            books.promote(earlier)
        try:
            getattr(books, edit.op)(edit)
        except InputError as error:
            unapplied[edit.number] = str(error)
    books.promote(earlier)
    if features is not None:
        books.learn(features)
    return Replayed(books.table(), books.records(), unapplied)


class _Books:
    """Rows and categories while edits are made. Every edit checks all before it changes any.

    ``part`` is what an image was put into before merges; ``merged_into`` leads on from there.
    """

    def __init__(self, assignments: pyarrow.Table, categories: Records) -> None:
        self.original = assignments
        self.part = assignments.column("category").to_numpy().astype(np.int64)
        self.by_id = {int(record["id"]): dict(record) for record in categories}
        self.confirmed = np.zeros(len(self.part), bool)
        self.taught: set[int] = set()

    # -- the edits ----------------------------------------------------------------------------

    def rename(self, edit: Edit) -> None:
        record = self._live(edit.category)
        if record["kind"] == "known" and not record.get("promoted"):
            raise InputError(
                f"category {record['id']} is the known class {record['name']!r}: "
                "name it in `known=...`, renaming is for new categories"
            )
        self._free(edit.name, besides=record["id"])
        record["name"] = edit.name
        record["named"] = True

    def merge(self, edit: Edit) -> None:
        record, into = self._novel(edit.category), self._live(edit.into)
        if record["id"] == into["id"]:
            raise InputError(f"category {record['id']} cannot be merged with itself")
        self._put(record, into)

    def mark(self, edit: Edit) -> None:
        record, into = self._novel(edit.category), self._live(edit.into)
        if into["kind"] != "known":
            raise InputError(
                f"category {into['id']} is not a known class: merge {record['id']} into it, or "
                "mark it as one of the known classes"
            )
        self._put(record, into)

    def split(self, edit: Edit) -> None:
        """The images may be anywhere: it was the category of all of them when it was made, but what
        had brought some of them there may be undone."""
        record, rows = self._live(edit.category), self._rows(edit.images)
        new = FIRST_SPLIT_ID + edit.number
        name = edit.name or f"split {edit.number}"
        self._free(name)
        self.by_id[new] = {
            "id": new,
            "kind": "novel",
            "name": name,
            "suggested_names": [],
            "count": 0,
            "exemplars": [],
            "split_from": record["id"],
            **({"named": True} if edit.name else {}),
        }
        self._move(rows, new)

    def move(self, edit: Edit) -> None:
        into = self._live(edit.into)
        self._move(self._rows(edit.images), into["id"])

    def hide(self, edit: Edit) -> None:
        record = self._live(edit.category)
        if record.get("hidden"):
            raise InputError(f"category {record['id']} is hidden already")
        record["hidden"] = True

    def promote(self, earlier: Sequence[Edit]) -> None:
        """What was named on an earlier run is a known class from here on."""
        for name in {edit.name for edit in earlier if edit.name}:
            for record in self.by_id.values():
                if record.get("named") and record["name"] == name and record["kind"] == "novel":
                    record["kind"] = "known"
                    record["promoted"] = True

    # -- what they are made of ----------------------------------------------------------------

    def _live(self, category: int | None) -> dict[str, Any]:
        """The record of a category, or of the one that it was merged into."""
        seen: set[int] = set()
        record = self.by_id.get(-1 if category is None else category)
        while record is not None and record.get("merged_into") is not None:
            if record["id"] in seen:
                break
            seen.add(record["id"])
            record = self.by_id.get(record["merged_into"])
        if record is None:
            raise InputError(f"no category {category} in this run: see categories.json for the ids")
        return record

    def _novel(self, category: int | None) -> dict[str, Any]:
        record = self._live(category)
        if record["kind"] == "known" and not record.get("promoted"):
            raise InputError(
                f"category {record['id']} is the known class {record['name']!r}, which stays: "
                "merge the other one into it"
            )
        return record

    def _free(self, name: str | None, besides: int | None = None) -> None:
        assert name is not None
        for record in self.by_id.values():
            taken = record["name"].casefold() == name.casefold()
            if taken and record["id"] != besides and record.get("merged_into") is None:
                raise InputError(
                    f"the name {name!r} is taken by category {record['id']}: choose another, or "
                    f"merge the two"
                )

    def _rows(self, images: Sequence[str]) -> np.ndarray:
        """Rows of images; an InputError for one that the run has not seen."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = self.original.column("id")
        rows = pc.index_in(pa.array(images, ids.type), value_set=ids.combine_chunks())
        if rows.null_count:
            missing = images[rows.is_null().to_pylist().index(True)]
            raise InputError(f"no image {missing!r} in this run: ids are those of the table")
        return np.unique(rows.to_numpy())

    def _id(self, row: int) -> str:
        return str(self.original.column("id")[int(row)].as_py())

    def _put(self, record: dict[str, Any], into: dict[str, Any]) -> None:
        record["merged_into"] = into["id"]
        self.taught |= {record["id"], into["id"]}

    def _move(self, rows: np.ndarray, into: int) -> None:
        self.taught |= {self._live(int(part))["id"] for part in np.unique(self.part[rows])}
        self.taught.add(into)
        self.part[rows] = into
        self.confirmed[rows] = True

    def learn(self, features: Rows) -> None:
        """Neighbours of what was corrected follow."""
        owner = {part: self._live(part)["id"] for part in self.by_id}
        taught = {owner[part] for part in self.taught}
        self.part = follow(features, self.part, self.confirmed, owner, taught)

    # -- the result ---------------------------------------------------------------------------

    def category(self) -> np.ndarray:
        """Of every row, merges followed."""
        parts, at = np.unique(self.part, return_inverse=True)
        owners = np.array([self._live(int(part))["id"] for part in parts], np.int64)
        return owners[at.ravel()]

    def records(self) -> list[dict[str, Any]]:
        """The categories by id; those whose images changed with new counts and examples."""
        by_id, now = self.by_id, self.category()
        before = self.original.column("category").to_numpy()
        changed = now != before
        order = np.argsort(-self.original.column("score").to_numpy(), kind="stable")
        for category in sorted({*now[changed].tolist(), *before[changed].tolist()}):
            record, rows = by_id[category], order[now[order] == category]
            record["count"] = len(rows)
            kept = set(rows.tolist())
            known = self._known_rows(record["exemplars"])
            examples = [row for row in known if row in kept]
            more = (row for row in rows.tolist() if row not in set(known))
            examples += [row for row, _ in zip(more, range(_EXEMPLARS - len(examples)))]
            record["exemplars"] = [self._id(row) for row in examples]
        return [by_id[category] for category in sorted(by_id)]

    def _known_rows(self, images: Sequence[str]) -> list[int]:
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = self.original.column("id")
        rows = pc.index_in(pa.array(images, ids.type), value_set=ids.combine_chunks())
        return [row for row in rows.to_pylist() if row is not None]

    def table(self) -> pyarrow.Table:
        """The rows with their categories as they are now; a moved image is certain."""
        import pyarrow as pa
        import pyarrow.compute as pc

        now = self.category()
        used, inverse = np.unique(now, return_inverse=True)
        columns = {"category": pa.array(now, pa.int32())}
        for column in ("kind", "name"):
            values = pa.array([self.by_id[int(category)][column] for category in used], pa.string())
            columns[column] = pc.take(values, pa.array(inverse.ravel()))
        if "confidence" in self.original.column_names:
            before = self.original.column("confidence").to_numpy()
            columns["confidence"] = pa.array(
                np.where(self.confirmed, 1.0, before).astype(before.dtype)
            )
        table = self.original
        for name, values in columns.items():
            at = table.schema.get_field_index(name)
            table = table.set_column(
                at, table.schema.field(at), values.cast(table.schema.types[at])
            )
        return table
