"""Giving memory back that nobody uses any more."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Return what this process has freed to the system, as far as its allocators hold on to it.

    Between the phases of a run: the arrays of one phase would else stand beside those of the next.
    A few milliseconds.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc
        libc.malloc_trim(0)
