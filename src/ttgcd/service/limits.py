"""How much is taken from whom."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bytes of a request and of an image, pixels of an image, images of a request, images that
    wait to be learned from, images a second from one client (0: any), streams."""

    request_bytes: int = 64 * 2**20
    image_bytes: int = 20 * 2**20
    pixels: int = 50_000_000
    images: int = 512
    queue: int = 4096
    rate: float = 0.0
    streams: int = 16


class Rate:
    """A bucket of tokens for each client: it fills at ``rate`` a second, up to ten seconds' worth
    and at least one request's."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, max(burst, 10 * rate)
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait(self, client: str, cost: int) -> float:
        """0 when ``cost`` is granted, else the seconds until it would be."""
        if self.rate <= 0:
            return 0.0
        now = time.monotonic()
        with self._lock:
            left, since = self._left.get(client, (self.burst, now))
            left = min(self.burst, left + (now - since) * self.rate)
            granted = left >= cost
            self._left[client] = (left - cost if granted else left, now)
            if len(self._left) > 10_000:  # clients that have been quiet have full buckets
                self._left = {c: v for c, v in self._left.items() if now - v[1] < 60}
            return 0.0 if granted else (cost - left) / self.rate
