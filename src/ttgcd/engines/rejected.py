"""``rejected.csv``: samples that were set aside, and why."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ttgcd.errors import InputError
from ttgcd.storage.durable import write_atomic, writing
from ttgcd.streams.base import Rejected

_HEADER = "id,reason\n"


class RejectedFile:
    """A growing list on disk; what was added after a checkpoint is cut off when a run goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._bytes = 0

    def begin(self) -> None:
        """An empty list."""
        self.count, self._bytes = 0, len(_HEADER)
        with writing(self.path.parent):
            write_atomic(self.path, _HEADER.encode())

    def add(self, rejected: Sequence[Rejected]) -> None:
        if not rejected:
            return
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows((r.id, r.reason) for r in rejected)
        data = text.getvalue().encode()
        with writing(self.path.parent), open(self.path, "r+b") as file:
            file.truncate(self._bytes)  # a line cut short by a full disk goes away
            file.seek(self._bytes)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self.count += len(rejected)
        self._bytes += len(data)

    def finish(self, path: Path) -> None:
        """Put the whole list at ``path``; this one stays, in case the end must be done again."""
        with writing(path.parent):
            write_atomic(path, self._content())

    def values(self) -> dict[str, Any]:
        return {"count": self.count, "bytes": self._bytes}

    def load(self, values: dict[str, Any]) -> None:
        self.count, self._bytes = values["count"], values["bytes"]
        self._content()

    def ids(self) -> Iterator[str]:
        rows = csv.reader(io.StringIO(self._content().decode(), newline=""))
        next(rows)
        return (row[0] for row in rows)

    def _content(self) -> bytes:
        try:
            data = self.path.read_bytes()[: self._bytes]
        except OSError as error:
            raise InputError(
                f"cannot read {str(self.path)!r}: {error.strerror}. "
                "Start again with `overwrite=True`"
            ) from None
        if len(data) < self._bytes:
            raise InputError(f"{str(self.path)!r} is damaged. Start again with `overwrite=True`")
        return data
