"""Being asked to stop: finish the batch, leave a checkpoint, end with the customary code."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")
_HEARD = "\nstopping after this batch, with a checkpoint to go on from (again: at once)\n"


class Interrupted(Exception):
    """The run was asked to stop and has left a state from which it can go on."""

    def __init__(self, number: int) -> None:
        self.signal = number
        name = signal.Signals(number).name
        super().__init__(f"stopped by {name}; go on with `resume=True`")

    @property
    def exit_code(self) -> int:
        """128 + signal, as a shell reports it: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signal


class StopRequest:
    """The first signal to stop that came in, if any."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def obey(self) -> None:
        """Raise ``Interrupted`` if a signal has come in."""
        if self.signal is not None:
            raise Interrupted(self.signal)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Note the first SIGINT, SIGTERM or SIGHUP, and say so at once on standard error, for the batch
    at hand may take a while; a second one acts as it would have without us.

    Signals that the parent process had set to be ignored (``nohup``, a shell's background job)
    stay ignored. Outside the main thread, where Python takes no signals, nothing is noted.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before: dict[int, Any] = {}

    def restore() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        request.signal = number
        restore()
        with suppress(OSError):  # no print: the signal may have come in the middle of one
            os.write(2, _HEARD.encode())

    for name in _STOPS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            before[number] = signal.signal(number, note)
    try:
        yield request
    finally:
        restore()
