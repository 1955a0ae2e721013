"""Tell another service that a category was born. Only hosts that were allowed are ever called."""

from __future__ import annotations

import json
import queue
import threading
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from ttgcd.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TIMEOUT, _TRIES = 5.0, 3


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An allowed host must not send us to one that is not."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


class Webhook:
    """POSTs ``{"event": "born", "stream": ..., "category": ...}`` to a URL, in the background.

    After a crash a birth may be told twice; it is told three times before it is given up.
    """

    def __init__(self, url: str, allowed: Sequence[str] = ()) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"`on_birth={url}` is no http address")
        if parts.hostname not in (*LOOPBACK, *allowed):
            raise InputError(
                f"`on_birth={url}`: {parts.hostname} is not this machine; allow it by "
                f"`allow_host={parts.hostname}`"
            )
        self._url = url
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue(1000)
        self._opener = urllib.request.build_opener(_NoRedirects)
        threading.Thread(target=self._run, name="ttgcd-webhook", daemon=True).start()

    def __call__(self, stream: str, category: int) -> None:
        with suppress(queue.Full):  # a receiver that is gone must not stop the stream
            self._queue.put_nowait({"event": "born", "stream": stream, "category": category})

    def _run(self) -> None:
        while True:
            body = json.dumps(self._queue.get()).encode()
            for _ in range(_TRIES):
                request = urllib.request.Request(
                    self._url, body, {"Content-Type": "application/json"}, method="POST"
                )
                try:
                    with self._opener.open(request, timeout=_TIMEOUT):
                        break
                except OSError:
                    continue
