"""Where somebody said that a stream is over: numbers of images, on disk before it is acted upon."""

from __future__ import annotations

import json
from pathlib import Path

from ttgcd.storage.durable import write_atomic


class Ends:
    """The ends of a stream so far, in order; it may go on after each of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: list[int] = json.loads(path.read_bytes()) if path.exists() else []

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> int:
        return self._places[number]

    def add(self, images: int) -> None:
        """The stream is over after so many images; saying it twice is saying it once."""
        if self._places and self._places[-1] >= images:
            return
        places = [*self._places, images]
        write_atomic(self._path, json.dumps(places).encode())
        self._places = places

    def whole(self, images: int, batch_size: int) -> int:
        """How many of the first ``images`` are in whole batches, or in the last before an end."""
        begin = max((place for place in self._places if place <= images), default=0)
        return begin + (images - begin) // batch_size * batch_size
