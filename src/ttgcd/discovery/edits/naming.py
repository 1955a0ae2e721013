"""Categories as people name them: what is shown is what edits take, and edits are told in names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ttgcd.discovery.edits.log import active
from ttgcd.discovery.edits.records import Edit
from ttgcd.discovery.edits.replay import FIRST_SPLIT_ID
from ttgcd.errors import InputError

Record = Mapping[str, Any]


def find_category(said: int | str, records: Sequence[Record]) -> int:
    """The id of a category, by its name as the summary and the report show it ("novel 9", or the
    suggestion "moose?"), or by its id.

    >>> records = [{"id": 0, "name": "cat"}, {"id": 5, "name": "novel 5", "good_name": "moose"}]
    >>> [find_category(said, records) for said in ("Novel 5", "moose?", "0", 5)]
    [5, 5, 0, 5]
    """
    if isinstance(said, int):
        return said
    text = " ".join(said.split())
    live = [record for record in records if record.get("merged_into") is None]
    named = [record for record in live if _is(record["name"], text)]
    if not named and text.isdecimal():
        return int(text)
    if not named:
        guess = text.removesuffix("?").rstrip()
        named = [
            record
            for record in live
            if not record.get("named") and _is(record.get("good_name"), guess)
        ]
    if len(named) == 1:
        return int(named[0]["id"])
    if named:
        ids = ", ".join(str(record["id"]) for record in named)
        raise InputError(f"{text!r} are several categories: say which by its id, one of {ids}")
    names = [str(record["name"]) for record in live]
    near = difflib.get_close_matches(text, names, 3, 0.5) or names[-3:]
    raise InputError(
        f"no category {text!r}: give a name as in {', '.join(map(repr, near))}, or an id"
    )


def other_meaning(said: str, category: int, records: Sequence[Record]) -> str | None:
    """What a number may have been meant for: 9 is an id, and there is also a "novel 9"."""
    if not said.strip().isdecimal():
        return None
    for record in records:
        numbered = (f"novel {said.strip()}", f"group {said.strip()}")
        if record["name"] in numbered and record["id"] != category:
            return (
                f"{said.strip()} was taken for an id; "
                f'for {record["name"]!r} (id {record["id"]}) write "{record["name"]}"'
            )
    return None


def told(edits: Sequence[Edit], records: Sequence[Record]) -> list[str]:
    """Every edit of a log in the names of its time; ``records`` are the run's own categories."""
    own = {int(record["id"]): str(record["name"]) for record in records}
    texts: list[str] = []
    names = dict(own)
    for place, edit in enumerate(edits):
        if edit.target is not None:
            names = _names(own, active(edits[: place + 1]))
            texts.append(f"{edit.op} edit {edit.target}: {texts[edit.target - 1]}")
            continue
        texts.append(edit.text(names))
        _follow(names, edit)
    return texts


def _names(own: Mapping[int, str], counting: Sequence[Edit]) -> dict[int, str]:
    names = dict(own)
    for edit in counting:
        _follow(names, edit)
    return names


def _follow(names: dict[int, str], edit: Edit) -> None:
    if edit.op == "rename" and edit.category is not None:
        names[edit.category] = str(edit.name)
    elif edit.op == "split":
        names[FIRST_SPLIT_ID + edit.number] = edit.name or f"split {edit.number}"


def _is(name: object, text: str) -> bool:
    return isinstance(name, str) and name.casefold() == text.casefold()
