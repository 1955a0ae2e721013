"""Progress: one line that is written over on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from ttgcd.wording import counted

_UNITS = {"re-align": "epoch"}


@dataclass
class _Phase:
    """How far a phase is, and the seconds that were its own."""

    first: int
    done: int
    seconds: float = 0.0


class Progress:
    """Called as ``progress(phase, done, total)``; shows rate and time left of that phase.

    Phases take turns: a stream waits while the encoder is re-aligned. The time since the last call
    belongs to the phase that calls now; otherwise the stream's time left would stand still
    meanwhile and be wrong for long after.
    """

    def __init__(
        self,
        out: TextIO | None = None,
        seconds_between_lines: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = out or sys.stderr
        self._clock = clock
        self._phases: dict[str, _Phase] = {}
        self._current: str | None = None
        self._at = clock()
        self._shown_at: dict[str, float] = {}
        self._open_line = False
        self._gap = 0.1 if self._out.isatty() else seconds_between_lines

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = self._clock()
        taken, self._at = now - self._at, now
        turn = phase != self._current
        seen = self._phases.get(phase)
        if seen is None or done < seen.done:  # new, or the same phase of another run
            seen = self._phases[phase] = _Phase(done, done)
        else:
            seen.seconds += taken
        seen.done, self._current = done, phase
        due = now - self._shown_at.get(phase, float("-inf")) >= self._gap
        if due or turn or done >= total:
            self._shown_at[phase] = now
            self._show(_text(phase, seen, total), turn, done >= total)

    def say(self, text: str) -> None:
        """A line that cannot wait for the end."""
        from ttgcd.wording import as_options

        self.close()  # a line in the middle of a bar would be torn
        print(f"note: {as_options(text)}", file=self._out, flush=True)

    def close(self) -> None:
        """End the line that is being written over."""
        if self._open_line:
            print(file=self._out, flush=True)
        self._open_line = False

    def _show(self, text: str, turn: bool, ended: bool) -> None:
        if not self._out.isatty():
            print(text, file=self._out, flush=True)
            return
        if turn:
            self.close()
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{text[:width]:<{width}}", end="", file=self._out, flush=True)
        self._open_line = True
        if ended:
            self.close()


@contextmanager
def shown(quiet: bool) -> Iterator[Progress | None]:
    """Progress for the length of a command, or none; the line ends whatever happens."""
    progress = None if quiet else Progress()
    try:
        yield progress
    finally:
        if progress is not None:
            progress.close()


def _text(phase: str, seen: _Phase, total: int) -> str:
    unit = _UNITS.get(phase, "image")
    text = f"{phase}: {seen.done:,}/{counted(total, unit)}"
    progressed = seen.done - seen.first
    if seen.seconds > 0 and progressed > 0:
        rate = progressed / seen.seconds
        speed = f"{rate:,.1f} {unit}s/s" if rate >= 1 else f"{1 / rate:,.1f} s an {unit}"
        text += f", {speed}"
        if seen.done < total:
            text += f", {duration((total - seen.done) / rate)} left"
    return text


def duration(seconds: float) -> str:
    """A time in the unit that a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    return f"{minutes} min" if minutes < 90 else f"{hours} h" if hours < 48 else f"{hours // 24} d"
