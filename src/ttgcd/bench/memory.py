"""Peak memory of one run inside a process that makes many."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path


class PeakMemory:
    """The peak since construction: on the GPU when there is one, else resident memory."""

    def __init__(self) -> None:
        import torch

        self._cuda = torch.cuda.is_available()
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
            return
        with suppress(OSError):  # Linux only; elsewhere the peak is that of the whole process
            Path("/proc/self/clear_refs").write_text("5")

    def bytes(self) -> int:
        if self._cuda:
            import torch

            return int(torch.cuda.max_memory_allocated())
        with suppress(OSError):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
