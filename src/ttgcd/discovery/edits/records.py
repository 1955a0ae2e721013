"""One edit as a typed record, and the JSON that it is read from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from ttgcd.errors import InputError

Op = Literal["rename", "merge", "split", "move", "hide", "mark", "undo", "redo"]
FORMAT = "ttgcd.edits/1"

#: What every kind of edit says; a "?" marks what may be left out.
SAYS: dict[str, tuple[str, ...]] = {
    "rename": ("category", "name"),
    "merge": ("category", "into"),
    "split": ("category", "images", "name?"),
    "move": ("images", "into"),
    "hide": ("category",),
    "mark": ("category", "into"),
    "undo": ("target",),
    "redo": ("target",),
}
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Edit:
    """What somebody changed.

    Parameters
    ----------
    op: ``rename`` a category; ``merge`` it into another; ``split`` picked images off it; ``move``
        images into a category (the one that they are in confirms them); ``hide`` a category;
        ``mark`` it as the known class ``into``; ``undo`` and ``redo`` edit number ``target``.
    number: its place in the log, from 1; 0 while it is not in a log.
    when, who: time (ISO 8601, UTC) and user.
    """

    op: Op
    category: int | None = None
    into: int | None = None
    name: str | None = None
    images: tuple[str, ...] = ()
    target: int | None = None
    number: int = 0
    when: str = ""
    who: str = ""

    def as_json(self) -> dict[str, Any]:
        """The record in the log; what does not apply is left out."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        record["images"] = list(self.images)
        return {
            key: value
            for key, value in record.items()
            if value not in (None, [], "") and (key, value) != ("number", 0)
        }

    def text(self, names: Mapping[int, str] | None = None) -> str:
        """For people: "merge 58 into 12", with names "merge 'elk' (id 58) into 'moose' (id 12)"."""
        names = names or {}
        category, into = (
            f"{names[which]!r} (id {which})" if which is not None and which in names else str(which)
            for which in (self.category, self.into)
        )
        images = f"{len(self.images)} image{'s' * (len(self.images) != 1)}"
        return {
            "rename": f"rename {category} to {self.name!r}",
            "merge": f"merge {category} into {into}",
            "split": f"split {images} off {category}" + (f" as {self.name!r}" if self.name else ""),
            "move": f"move {images} into {into}",
            "hide": f"hide {category}",
            "mark": f"mark {category} as the known class {into}",
            "undo": f"undo edit {self.target}",
            "redo": f"redo edit {self.target}",
        }[self.op]


def parse(record: Any, where: str) -> Edit:
    """An edit from JSON; an InputError that begins with ``where`` when it says too little, too
    much, or the wrong thing."""
    if not isinstance(record, Mapping):
        raise InputError(f"{where}: an edit is an object such as {{'op': 'hide', 'category': 9}}")
    op = record.get("op")
    if not isinstance(op, str) or op not in get_args(Op):
        raise InputError(f"{where}: unknown op {op!r}: use one of {', '.join(SAYS)}")
    wanted = {field.rstrip("?"): not field.endswith("?") for field in SAYS[op]}
    for field, needed in wanted.items():
        if needed and record.get(field) in (None, [], ()):
            raise InputError(f"{where}: {op} needs {field!r}")
    unknown = sorted(set(record) - set(wanted) - {"op", "number", "when", "who"})
    if unknown:
        raise InputError(f"{where}: {op} has no {', '.join(map(repr, unknown))}")
    numbers = {key: _number(record, key, where) for key in ("category", "into", "target")}
    name = record.get("name")
    return Edit(
        op=op,  # type: ignore[arg-type]
        **numbers,
        name=None if name is None else clean_name(name, where),
        images=_images(record.get("images") or (), where),
        number=_number(record, "number", where) or 0,
        when=str(record.get("when", "")),
        who=str(record.get("who", "")),
    )


def clean_name(name: object, where: str) -> str:
    """A category's name without needless blanks; an InputError for one that cannot be shown."""
    text = " ".join(name.split()) if isinstance(name, str) else ""
    if not text:
        raise InputError(f"{where}: the name is empty: give a word")
    if not text.isprintable():
        raise InputError(f"{where}: the name holds control characters: {name!r}")
    if len(text) > _LONGEST_NAME:
        raise InputError(f"{where}: the name is longer than {_LONGEST_NAME} characters")
    return text


def read_edits(path: str | Path) -> list[Edit]:
    """Edits from a JSON file ``{"format": "ttgcd.edits/1", "edits": [...]}``."""
    where = str(path)
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {where!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where!r} is not JSON: {error}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f"{where!r} is not a file of edits: its format must be {FORMAT!r}")
    edits = record.get("edits")
    if not isinstance(edits, list) or not edits:
        raise InputError(f"{where!r} holds no edits")
    found = [parse(edit, f"{where!r}, edit {n}") for n, edit in enumerate(edits, 1)]
    for n, edit in enumerate(found, 1):
        if edit.op in ("undo", "redo"):
            raise InputError(f"{where!r}, edit {n}: {edit.op} belongs on the command line")
    return found


def _number(record: Mapping[str, Any], key: str, where: str) -> int | None:
    value = record.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InputError(f"{where}: {key!r} must be a whole number, got {value!r}")


def _images(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(f"{where}: 'images' must be a list of image ids, got {value!r}")
    wrong = [image for image in value if not isinstance(image, str) or not image]
    if wrong:
        raise InputError(f"{where}: {wrong[0]!r} is no image id")
    return tuple(dict.fromkeys(value))
