"""The edits of a log put on top of what a run answered: a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.edits.evidence import Evidence, Together
from ttgcd.discovery.edits.images import Images
from ttgcd.discovery.edits.log import active
from ttgcd.discovery.edits.records import Edit
from ttgcd.errors import InputError
from ttgcd.prototypes.confidence import Rows
from ttgcd.prototypes.teaching import Lessons, follow

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
    with the reason: they stay in the log and count again when they can. ``lessons`` say where
    further images go that were not there, None when no edit was about an image."""

    assignments: pyarrow.Table
    categories: list[dict[str, Any]]
    unapplied: dict[int, str]
    lessons: Lessons | None = None


def apply(
    edits: Sequence[Edit],
    assignments: pyarrow.Table,
    categories: Records,
    features: Rows | None = None,
    carried: int = 0,
    earlier: Evidence | None = None,
) -> Replayed:
    """Put ``edits`` (a whole log, undos included) on top of a run's own rows and categories.

    ``assignments`` has the columns of assignments.parquet, ``categories`` are the records of
    categories.json. With ``features``, one unit row an image, the neighbours of what was corrected
    follow (``ttgcd.prototypes.teaching``). The first ``carried`` edits were made on earlier runs:
    what was named there is a known class here, and the images that they speak of are those of
    ``earlier``. Nothing given is changed. Without an edit that counts rows and categories come back
    as they are.
    """
    counting = active(edits)
    if not counting:
        return Replayed(assignments, [dict(record) for record in categories], {})
    books = _Books(assignments, categories, features, carried, earlier)
    unapplied: dict[int, str] = {}
    before = [edit for edit in counting if edit.number <= carried]
    for place, edit in enumerate(counting):
        if place == len(before):
            books.promote(before)
        try:
            getattr(books, edit.op)(edit)
        except InputError as error:
            unapplied[edit.number] = str(error)
    books.promote(before)
    lessons = books.learn()
    return Replayed(books.table(), books.records(), unapplied, lessons)


class _Books:
    """Rows and categories while edits are made. Every edit checks all before it changes any.

    ``part`` is what an image was put into before merges; ``merged_into`` leads on from there.
    Images of earlier runs stand in front of the run's own.
    """

    def __init__(
        self,
        assignments: pyarrow.Table,
        categories: Records,
        features: Rows | None,
        carried: int,
        earlier: Evidence | None,
    ) -> None:
        self.original = assignments
        self.features = features
        self.earlier = None if features is None else earlier
        self.images = Images(assignments.column("id"), features, carried, self.earlier)
        self.front = self.images.front
        self.part = assignments.column("category").to_numpy().astype(np.int64)
        if self.earlier is not None:
            self.part = np.concatenate([self.earlier.category, self.part])
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
        record, rows = self._live(edit.category), self.images.rows(edit)
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
        self._move(self.images.rows(edit), into["id"])

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

    def _id(self, row: int) -> str:
        return str(self.original.column("id")[int(row)].as_py())

    def _put(self, record: dict[str, Any], into: dict[str, Any]) -> None:
        record["merged_into"] = into["id"]
        self.taught |= {record["id"], into["id"]}

    def _move(self, rows: np.ndarray, into: int) -> None:
        # What an earlier run put aside for review is in no category of this one.
        left = {int(part) for part in np.unique(self.part[rows])} & set(self.by_id)
        self.taught |= {self._live(part)["id"] for part in left}
        self.taught.add(into)
        self.part[rows] = into
        self.confirmed[rows] = True

    def learn(self) -> Lessons | None:
        """Neighbours of what was corrected follow."""
        if self.features is None:
            return None
        owner = {part: self._live(part)["id"] for part in self.by_id}
        taught = {owner[part] for part in self.taught}
        here, features = np.ones(len(self.part), bool), self.features
        if self.earlier is not None:
            here[: self.front] = np.isin(self.part[: self.front], list(self.by_id))
            features = Together(self.earlier.features[here[: self.front]], self.features)
        self.part[here], lessons = follow(
            features, self.part[here], self.confirmed[here], owner, taught
        )
        return lessons

    # -- the result ---------------------------------------------------------------------------

    def category(self) -> np.ndarray:
        """Of every row of the table, merges followed."""
        parts, at = np.unique(self.part[self.front :], return_inverse=True)
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
            known = [row for row in self.images.own(record["exemplars"]) if row is not None]
            examples = [row for row in known if row in kept]
            more = (row for row in rows.tolist() if row not in set(known))
            examples += [row for row, _ in zip(more, range(_EXEMPLARS - len(examples)))]
            record["exemplars"] = [self._id(row) for row in examples]
        return [by_id[category] for category in sorted(by_id)]

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
                np.where(self.confirmed[self.front :], 1.0, before).astype(before.dtype)
            )
        table = self.original
        for name, values in columns.items():
            at = table.schema.get_field_index(name)
            table = table.set_column(
                at, table.schema.field(at), values.cast(table.schema.types[at])
            )
        return table
