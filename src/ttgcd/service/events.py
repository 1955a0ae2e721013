"""What happens in a stream, for those who watch: a ring of the latest events."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One thing that happened; ``number`` grows, also over restarts."""

    number: int
    kind: str
    data: dict[str, Any]

    def sse(self) -> str:
        """As server-sent events spell it."""
        return f"id: {self.number}\nevent: {self.kind}\ndata: {json.dumps(self.data)}\n\n"


class Events:
    """The last ``keep`` events. Who comes back with the number of the last event seen gets those
    after it, or a ``reset`` when some of them are gone."""

    def __init__(self, keep: int = 2048) -> None:
        self._ring: deque[Event] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._number = int(time.time() * 1000) << 10
        self._first = self._number
        self._listeners: set[Callable[[], None]] = set()

    @property
    def last(self) -> int:
        return self._number

    def say(self, kind: str, **data: Any) -> None:
        with self._lock:
            self._number += 1
            self._ring.append(Event(self._number, kind, data))
            listeners = list(self._listeners)
        for wake in listeners:
            wake()

    def after(self, number: int) -> list[Event]:
        with self._lock:
            events = [event for event in self._ring if event.number > number]
            oldest = self._ring[0].number - 1 if self._ring else self._first
            if number < oldest:
                return [Event(self._number, "reset", {})]
        return events

    def listen(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._listeners.add(wake)

    def leave(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._listeners.discard(wake)
