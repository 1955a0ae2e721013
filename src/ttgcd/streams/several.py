"""Several sources one after the other."""

from __future__ import annotations

import bisect
import os
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ttgcd.errors import InputError
from ttgcd.streams.base import Source
from ttgcd.streams.files import readable_text, unique_ids


class Several(Source):
    """The samples of all parts in the order given.

    An id is the part's own, behind the name the part was given by: two folders may hold the same
    file names.
    """

    def __init__(self, parts: Sequence[tuple[str, Source]]) -> None:
        self._parts = [source for _, source in parts]
        for name, source in parts:
            if source.kind != "images":
                raise InputError(
                    f"{name!r} holds embeddings: of several sources every one must hold images"
                )
        self.distant = any(source.distant for source in self._parts)
        names = [name for name, _ in parts if name]
        self.origin = ", ".join(names) or None
        if all(source.folder for source in self._parts):
            self.folder = os.getcwd()  # the names that were given are paths from here
        self._ends = list(accumulate(map(len, self._parts)))
        self._ids = unique_ids(
            [
                f"{_prefix(name)}{source.id(position)}"
                for name, source in parts
                for position in range(len(source))
            ]
        )

    def __len__(self) -> int:
        return len(self._ids)

    def id(self, position: int) -> str:
        return self._ids[position]

    def read(self, position: int) -> bytes | np.ndarray:
        source, inner = self._place(position)
        return source.read(inner)

    def prepare_random(self) -> None:
        for source in self._parts:
            source.prepare_random()

    def notes(self) -> tuple[str, ...]:
        return tuple(note for source in self._parts for note in source.notes())

    def signature(self, position: int) -> str:
        source, inner = self._place(position)
        return source.signature(inner)

    def close(self) -> None:
        for source in self._parts:
            source.close()

    def _place(self, position: int) -> tuple[Source, int]:
        part = bisect.bisect_right(self._ends, position)
        return self._parts[part], position - (self._ends[part - 1] if part else 0)


def _prefix(name: str) -> str:
    return readable_text(name.replace("\\", "/").rstrip("/")) + "/" if name else ""
