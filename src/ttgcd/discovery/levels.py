"""Coarser and finer answers from one run: which groups there are at a level, who is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ttgcd.errors import InputError
from ttgcd.prototypes.levels import SAME, Tree
from ttgcd.prototypes.parts import Parts
from ttgcd.wording import counted, listed

#: A level by its name, or by its number of groups.
LevelName = str | int
NAMES = ("coarse", "found", "fine")
_SHOWN = 10  # groups of a summary
_WORDS = 5  # suggested names of a group


@dataclass(frozen=True)
class Group:
    """Samples that are one at some level: categories together, one category, or a part of one.

    Parameters
    ----------
    id
        The category's own where the group is one; the same group has the same id at every level.
    kind
        "mixed" where known and novel categories are together.
    name
        The category's, with a number for a part of it; of several categories those with a name
        first, then the largest.
    categories
        Ids of what is in it, the largest first; one for a category and for a part of it.
    suggested_names
        Of the novel categories in it that have no name; a question, as theirs are.
    parts
        For a part of a category, the ids of the groups at the fine level that it is made of.
    """

    id: int
    kind: Literal["known", "novel", "mixed", "unsure"]
    name: str
    count: int
    categories: tuple[int, ...]
    suggested_names: tuple[str, ...] = ()
    parts: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The record in ``categories.json``."""
        return {
            **vars(self),
            "categories": list(self.categories),
            "suggested_names": list(self.suggested_names),
            "parts": list(self.parts),
        }


@dataclass(frozen=True)
class Level:
    """One level of a run.

    Parameters
    ----------
    name
        "coarse", "found", "fine", or the number of groups.
    groups
        By size, the largest first.
    labels
        The id of its group for every sample, in stream order.
    """

    name: str
    groups: tuple[Group, ...]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        return f"Level({self.name!r}, {counted(len(self), 'group')})"

    def names(self) -> list[str]:
        """The name of its group for every sample."""
        by_id = {group.id: group.name for group in self.groups}
        return [by_id[label] for label in self.labels.tolist()]

    def text(self) -> str:
        """A summary for people."""
        samples, groups = counted(len(self.labels), "sample"), counted(len(self), "group")
        lines = [f"level {self.name}: {samples} in {groups}"]
        width = max((len(group.name) for group in self.groups[:_SHOWN]), default=0)
        for group in self.groups[:_SHOWN]:
            words = ", ".join(group.suggested_names)
            more = f"  ({words}?)" if words else ""
            lines.append(f"  {group.name:<{width}} {group.count:>6,}{more}")
        if len(self) > _SHOWN:
            lines.append(f"  ... and {len(self) - _SHOWN:,} more")
        return "\n".join(lines)


def check_level(level: LevelName | None) -> LevelName | None:
    """A level as a user gives it: a name, or a number of groups (also as text)."""
    if level is None or (isinstance(level, str) and level in NAMES):
        return level
    try:
        number = int(level)
    except (TypeError, ValueError):
        number = 0
    if number < 1 or isinstance(level, (bool, float)):
        raise InputError(
            f"a level is {', '.join(NAMES)} or a number of groups of 1 or more, got {level!r}"
        )
    return number


class Levels:
    """All levels of a run.

    Parameters
    ----------
    category
        Of every sample.
    part
        Of every sample, its place among ``parts``; -1 where it has none (the pile for review).
    parts
        The finest groups, each with the category that it is of now.
    categories
        Their records, as in categories.json.
    hills
        Numbers of clusters at which the curve of the count has a hill.
    """

    def __init__(
        self,
        category: np.ndarray,
        part: np.ndarray,
        parts: Parts,
        categories: Sequence[Mapping[str, Any]],
        hills: Sequence[int] = (),
    ) -> None:
        sizes = np.bincount(part[part >= 0], minlength=len(parts))
        there = np.flatnonzero(sizes)
        place = np.full(len(parts) + 1, -1, np.int64)  # the last entry is for -1
        place[there] = np.arange(len(there))
        self._category, self._leaf = category, place[part]
        self._parts, self._sizes = parts.at(there), sizes[there]
        self._records = {int(record["id"]): record for record in categories}
        self.hills = tuple(hills)

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self._parts.centres, self._sizes, self._parts.category)

    @property
    def found(self) -> int:
        """Categories with samples, without the pile for review."""
        return self.tree.found

    @property
    def finest(self) -> int:
        return self.tree.finest

    def number(self, level: LevelName) -> int:
        """How many groups a level has."""
        level = check_level(level) or "found"
        if level == "coarse":
            return self.tree.coarse(self.hills)
        if level in ("found", "fine"):
            return self.found if level == "found" else self.finest
        if int(level) > self.finest:
            raise InputError(
                f"{level} groups are more than can be told apart here: the level can be 1 to "
                f"{self.finest} (fine), {self.found} were found"
            )
        return int(level)

    def at(self, level: LevelName) -> Level:
        """The groups of a level, and the group of every sample."""
        number = self.number(level)
        own = self._ids  # of every node
        node = self.tree.cut(number) if self.finest else np.zeros(0, np.int64)
        groups = [self._group(int(n), np.flatnonzero(node == n), own) for n in np.unique(node)]
        labels = np.where(self._leaf >= 0, np.append(own[node], 0)[self._leaf], self._category)
        outside, counts = np.unique(self._category[self._leaf < 0], return_counts=True)
        for c, count in zip(outside.tolist(), counts.tolist(), strict=True):
            record = self._records[c]
            groups.append(Group(c, record["kind"], record["name"], count, (c,)))
        groups.sort(key=lambda group: (-group.count, group.id))
        return Level(str(level), tuple(groups), labels.astype(np.int32))

    def parents(self) -> dict[int, int]:
        """The coarse group of every category that is in one with others."""
        coarse = self.at("coarse").groups
        return {c: g.id for g in coarse for c in g.categories if len(g.categories) > 1}

    def hills_note(self) -> str | None:
        """What to say where several numbers of categories are honest; None where one is."""
        if len(self.hills) < 2:
            return None
        numbers = " and ".join(f"{k:,}" for k in self.hills)
        offers = [
            f"{level} has {self.number(level):,}"
            for level in ("coarse", "fine")
            if self.number(level) != self.found
        ]
        shown = [k for k in self.hills if max(k / self.found, self.found / k) < SAME]
        said = "this is one of them" if shown else f"this run has {self.found:,}"
        known = any(record["kind"] == "known" for record in self._records.values())
        what = "categories" if known else "groups"
        more = f"; of the other levels, {' and '.join(offers)}" if offers else ""
        return f"about {numbers} {what} describe these images equally well: {said}{more}"

    # -- inside -------------------------------------------------------------------------------

    @cached_property
    def _ids(self) -> np.ndarray:
        return self.tree.ids(self._parts.ids) if self.finest else np.zeros(0, np.int64)

    def _group(self, node: int, leaves: np.ndarray, ids: np.ndarray) -> Group:
        category = self._parts.category[leaves]
        count = int(self._sizes[leaves].sum())
        own = np.unique(category)
        if len(own) == 1:
            record = self._records[int(own[0])]
            siblings = np.flatnonzero(self._parts.category == own[0])
            name, parts = record["name"], np.zeros(0, np.int64)
            if len(leaves) < len(siblings):
                parts = self._parts.ids[leaves]
                numbers = np.searchsorted(siblings, leaves) + 1
                name += "." + "+".join(map(str, numbers.tolist()))
            # What a category was suggested need not fit to a part of it.
            whole = len(leaves) == len(siblings) and not _has_name(record)
            words = record["suggested_names"][:_WORDS] if whole else ()
            kind = record["kind"]
            pieces = tuple(parts.tolist())
            return Group(int(ids[node]), kind, name, count, (int(own[0]),), tuple(words), pieces)
        sizes = {int(c): int(self._sizes[leaves[category == c]].sum()) for c in own}
        order = sorted(sizes, key=lambda c: (-sizes[c], c))
        records = [self._records[c] for c in order]
        named = [r for r in records if _has_name(r)]
        names = [r["name"] for r in (*named, *(r for r in records if not _has_name(r)))]
        kinds = {r["kind"] for r in records}
        words = [r["good_name"] for r in records if r.get("good_name") and not _has_name(r)]
        return Group(
            int(ids[node]),
            kinds.pop() if len(kinds) == 1 else "mixed",
            listed(names, 2),
            count,
            tuple(order),
            tuple(words[:_WORDS]),
        )


def _has_name(record: Mapping[str, Any]) -> bool:
    return record["kind"] == "known" or bool(record.get("named"))
