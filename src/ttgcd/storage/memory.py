"""Memory that nobody uses any more: given back, or kept for the next to come."""

from __future__ import annotations

import ctypes
import sys

# Of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def give_back() -> None:
    """Return what this process has freed to the system, as far as its allocators hold on to it.

    Between the phases of a run: the arrays of one phase would else stand beside those of the next.
    A few milliseconds.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc
        libc.malloc_trim(0)


def keep_freed() -> None:
    """Let this process keep what it frees, up to a gigabyte, instead of asking for it anew.

    Training makes and drops arrays of some megabytes at every step; each new one costs a page
    fault every 4 KiB, which a small model's step feels. ``give_back`` works as before.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):  # glibc
        libc.mallopt(_MMAP_THRESHOLD, 2**25)
        libc.mallopt(_TRIM_THRESHOLD, 2**30)
