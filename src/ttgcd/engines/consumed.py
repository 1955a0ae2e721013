"""What a run has read of its input, so that a changed input is noticed when it goes on.

The rule: a run goes on if the samples it has already read are the same, in the same order, with the
same signatures (size and time for files). What comes after them may have changed. A shuffled
stream of another length has another order, so any file added or removed is noticed there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from ttgcd.streams.stream import Stream


class Consumed:
    """A running hash over the ids and signatures of the places read so far."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self.place = 0

    def advance(self, place: int) -> None:
        """Everything before ``place`` has been read."""
        source = self._stream.source
        read = self._stream.order[self.place : max(place, self.place)].tolist()
        if read:
            self._hash.update(source.signed(read))
        self.place = max(place, self.place)

    def values(self) -> dict[str, Any]:
        return {"place": self.place, "sha256": self._hash.hexdigest()}

    def matches(self, values: dict[str, Any]) -> bool:
        """Advance to the place that was reached; whether the same has been read up to there."""
        if values["place"] > len(self._stream.order):
            return False
        self.advance(values["place"])
        return self.values() == values

    def difference(
        self, values: dict[str, Any], answered: Iterable[str], rejected: Iterable[str]
    ) -> str:
        """The first sample that is not what it was, in words."""
        source, order = self._stream.source, self._stream.order
        accepted, aside = iter(answered), set(rejected)
        now = (source.id(int(position)) for position in order[: values["place"]])
        kept = (name for name in now if name not in aside)
        for number, (was, name) in enumerate(zip_longest(accepted, kept)):
            if was != name:
                return (
                    f"sample {number + 1} was {was!r} and is now {name!r}"
                    if was is not None and name is not None
                    else f"sample {number + 1} was {was!r} and is gone"
                    if name is None
                    else f"{name!r} is new among the samples already read"
                )
        return "files already read have another size or time"
