"""``edits.jsonl``: one edit a line, each line sealed together with all that came before it.

A line is the edit's JSON with ``sha``, the first 16 hexadecimal digits of the SHA-256 over the
seal of the line before and the line's own content: a changed, lost, doubled or reordered line is
noticed. The first line names the format, and the run that the ids belong to. Nothing is ever
changed or removed: undo is an edit.
"""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ttgcd.discovery.edits.records import FORMAT, Edit, parse
from ttgcd.errors import InputError
from ttgcd.storage.durable import write_atomic, writing

NAME = "edits.jsonl"


class EditLog:
    """The log of one run, read and checked when it is opened.

    ``run`` tells which run a log that is begun here is about, ``carried`` how many of its edits
    were made on an earlier run that this one went on from; an existing log knows its own.
    """

    def __init__(self, path: Path, run: str = "", carried: int = 0) -> None:
        self.path = path
        self.run = run
        self.carried = carried
        self.edits: list[Edit] = []
        self.seal = ""
        self._data = b""
        try:
            self._read(path.read_bytes())
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None

    def append(self, edits: Sequence[Edit]) -> None:
        """Write further edits, all of them or none; when this returns they are on disk."""
        lines, seal = [self._data], self.seal
        if not self._data:
            head: dict[str, Any] = {"format": FORMAT, "run": self.run}
            if self.carried:
                head["carried"] = self.carried
            lines.append(_line(head, ""))
            seal = _seal(head, "")
        added = []
        now, who = datetime.now(timezone.utc).isoformat(timespec="seconds"), _user()
        for number, edit in enumerate(edits, len(self.edits) + 1):
            edit = replace(edit, number=number, when=edit.when or now, who=edit.who or who)
            lines.append(_line(edit.as_json(), seal))
            seal = _seal(edit.as_json(), seal)
            added.append(edit)
        data = b"".join(lines)
        with writing(self.path.parent, "then edit again"):
            write_atomic(self.path, data)
        self._data, self.seal = data, seal
        self.edits.extend(added)

    def _read(self, data: bytes) -> None:
        seal = ""
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            where = f"{str(self.path)!r}, line {number}"
            try:
                record = json.loads(line.decode("utf-8"))
                given = record.pop("sha")
                matches = given == _seal(record, seal)
            except (ValueError, KeyError, AttributeError, RecursionError):
                raise _damaged(where) from None
            if not matches:
                raise _damaged(where)
            seal = given
            if number > 1:
                self.edits.append(parse(record, where))
                continue
            if record.get("format") != FORMAT:
                raise InputError(
                    f"{where}: format {record.get('format')!r} where this ttgcd reads {FORMAT!r}: "
                    "use a newer ttgcd"
                )
            self.run = str(record.get("run", ""))
            self.carried = int(record.get("carried", 0))
        if data and not data.endswith(b"\n"):
            raise _damaged(f"{str(self.path)!r}, last line")
        self._data, self.seal = data, seal


def active(edits: Sequence[Edit]) -> list[Edit]:
    """The edits that count: neither undos and redos themselves, nor what they took back."""
    undone = _undone(edits)
    return [edit for edit in edits if edit.op not in ("undo", "redo") and edit.number not in undone]


def to_undo(edits: Sequence[Edit], target: int | None = None) -> Edit:
    """The undo of edit ``target``, or of the last one that counts."""
    counting = [edit.number for edit in active(edits)]
    if not counting:
        raise InputError("nothing to undo: no edit is in force")
    if target is not None and target not in counting:
        raise InputError(f"edit {target} is not in force: {_which(counting)}")
    return Edit("undo", target=counting[-1] if target is None else target)


def to_redo(edits: Sequence[Edit], target: int | None = None) -> Edit:
    """The redo of edit ``target``, or of what was undone last, unless an edit came after it."""
    undone = _undone(edits)
    if target is not None and target not in undone:
        raise InputError(f"edit {target} is not undone: {_which(undone)}")
    if not undone:
        raise InputError("nothing to redo: no edit is undone")
    if target is None and edits[-1].op not in ("undo", "redo"):
        raise InputError(f"an edit came after the last undo: name what to redo, {_which(undone)}")
    return Edit("redo", target=undone[-1] if target is None else target)


def _undone(edits: Sequence[Edit]) -> list[int]:
    """Numbers of undone edits, the last undone one at the end."""
    undone: dict[int, None] = {}
    for edit in edits:
        if edit.target is not None:
            undone.pop(edit.target, None)
            if edit.op == "undo":
                undone[edit.target] = None
    return list(undone)


def _which(numbers: Sequence[int]) -> str:
    return "choose one of " + ", ".join(map(str, sorted(numbers))) if numbers else "there is none"


def _canonical(record: dict[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _seal(record: dict[str, Any], before: str) -> str:
    # Lone surrogates may stand in file names that are not UTF-8.
    text = (before + _canonical(record)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


def _line(record: dict[str, Any], before: str) -> bytes:
    sealed = {**record, "sha": _seal(record, before)}
    return json.dumps(sealed, ensure_ascii=True).encode("ascii") + b"\n"


def _damaged(where: str) -> InputError:
    return InputError(
        f"{where} is damaged: it or a line before it was changed. Restore edits.jsonl from a copy, "
        "or move it away to go on without edits"
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        return ""
