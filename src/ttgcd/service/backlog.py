"""How many images waited to be learned from, over the last minutes."""

from __future__ import annotations

import time
from collections import deque

SECONDS, BINS = 10.0, 60


class Backlog:
    """The most that waited within each ten seconds; the last ten minutes are kept."""

    def __init__(self) -> None:
        self._most: deque[tuple[int, int]] = deque(maxlen=BINS)

    def note(self, waiting: int) -> None:
        """So many wait now."""
        now = int(time.time() / SECONDS)
        if self._most and self._most[-1][0] == now:
            self._most[-1] = (now, max(waiting, self._most[-1][1]))
        else:
            self._most.append((now, waiting))

    def over_time(self, now: float) -> list[int]:
        """Oldest first, up to the moment ``now``."""
        last = int(now / SECONDS)
        most = dict(self._most)
        return [most.get(at, 0) for at in range(last - BINS + 1, last + 1)]
