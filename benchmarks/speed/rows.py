"""A measured line of the table, and how to measure it fairly."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Row:
    """One claim: what, how much was asked for, how much was measured."""

    what: str
    target: float
    sense: Literal["at least", "at most"]
    measured: float
    unit: str = "x"
    note: str = ""

    @property
    def reached(self) -> bool:
        if self.sense == "at least":
            return self.measured >= self.target
        return self.measured <= self.target


#: With OMP_NUM_THREADS=1 what counts is processor time, which a busy machine does not stretch;
#: otherwise the time that passes.
PROCESSOR_TIME = os.environ.get("OMP_NUM_THREADS") == "1"


def seconds(work: Callable[[], object]) -> float:
    clock = time.process_time if PROCESSOR_TIME else time.perf_counter
    began = clock()
    work()
    return clock() - began


def side_by_side(*works: Callable[[], object], repeats: int = 3) -> list[float]:
    """Seconds of each, measured in turns so that a busy minute hits all of them; medians."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, mine in zip(works, times):
            mine.append(seconds(work))
    return [statistics.median(mine) for mine in times]


def machine() -> str:
    """Processor, cores and versions: what a figure must be read with."""
    import numpy
    import torch

    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        processor = named[0] if named else processor
    return (
        f"{processor}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, "
        f"{'processor time' if PROCESSOR_TIME else 'wall time'}, "
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"numpy {numpy.__version__}, {platform.system()}"
    )


def report(rows: list[Row]) -> None:
    """Print rows as a table, or as JSON lines where the collecting process asks for them."""
    if "--json" in sys.argv:
        for row in rows:
            print(json.dumps(asdict(row)))
        return
    for row in rows:
        mark = "yes" if row.reached else "NO"
        print(
            f"{row.what:62} {row.sense} {row.target:g}{row.unit}  measured {row.measured:.3g}"
            f"{row.unit}  {mark}  {row.note}"
        )
