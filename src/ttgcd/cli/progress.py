"""Progress: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

_UNITS = {"stream": "image", "corrupt": "image", "re-align": "epoch"}


class Progress:
    """Called as ``progress(phase, done, total)``; shows rate and time left for each phase."""

    def __init__(self, out: TextIO | None = None, seconds_between_lines: float = 5.0) -> None:
        self._out = out or sys.stderr
        self._bars: dict[str, Any] = {}
        self._started: dict[str, tuple[float, int]] = {}
        self._last_line: dict[str, float] = {}
        self._gap = seconds_between_lines

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._out.isatty():
            self._bar(phase, done, total)
        else:
            self._line(phase, done, total)

    def close(self) -> None:
        for bar in self._bars.values():
            bar.close()
        self._bars = {}

    def _bar(self, phase: str, done: int, total: int) -> None:
        from tqdm import tqdm

        if phase not in self._bars:
            unit = _UNITS.get(phase, "step")
            self._bars[phase] = tqdm(
                total=total,
                desc=f"{phase:>9}",
                unit=f" {unit}s",
                file=self._out,
                initial=0,
                dynamic_ncols=True,
                leave=True,
            )
        bar = self._bars[phase]
        bar.update(done - bar.n)
        if done >= total:
            bar.refresh()

    def _line(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        began, first = self._started.setdefault(phase, (now, done))
        due = now - self._last_line.get(phase, -1e9) >= self._gap
        if not due and done < total:
            return
        self._last_line[phase] = now
        unit = _UNITS.get(phase, "step")
        text = f"{phase}: {done:,}/{total:,} {unit}s"
        elapsed, progressed = now - began, done - first
        if elapsed > 0 and progressed > 0:
            rate = progressed / elapsed
            text += f", {rate:,.1f} {unit}s/s, {(total - done) / rate:,.0f} s left"
        print(text, file=self._out, flush=True)
