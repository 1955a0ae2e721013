"""``run.json``: how a result came about. Times and paths are here and in no other file of a run,
so that two runs on the same input leave the same bytes everywhere else."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

FORMAT = "ttgcd.run/1"
_PACKAGES = (
    "ttgcd",
    "torch",
    "transformers",
    "numpy",
    "scipy",
    "scikit-learn",
    "pillow",
    "pyarrow",
)


class Clock:
    """Started when a run starts."""

    def __init__(self) -> None:
        self.started = datetime.now(timezone.utc)
        self._since = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self._since


def manifest(
    clock: Clock,
    *,
    command: Sequence[str],
    settings: Mapping[str, Any],
    model: Mapping[str, Any] | None,
    input: Mapping[str, Any],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """The record of a run that ends now.

    ``settings`` are all that decides the result, seeds among them; ``model`` tells name and weight
    hash (None when embeddings were given), ``input`` what was read and its fingerprint,
    ``seconds`` where the time went.
    """
    return {
        "format": FORMAT,
        "command": list(command),
        "settings": dict(settings),
        "model": None if model is None else dict(model),
        "input": dict(input),
        "versions": versions(),
        "machine": machine(),
        "started": clock.started.isoformat(timespec="seconds"),
        "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "seconds": {
            "total": round(clock.seconds(), 3),
            **{phase: round(value, 3) for phase, value in seconds.items()},
        },
        "peak_memory_bytes": peak_memory(),
    }


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that decide the numbers."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def machine() -> dict[str, Any]:
    """Platform, processors and compute threads."""
    torch = sys.modules.get("torch")  # not imported for the sake of a count
    return {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads() if torch is not None else None,
    }


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes.

    ``ru_maxrss`` of a child begins with its parent's; the kernel's own figure does not.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
