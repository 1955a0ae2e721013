"""In which numbers an encoder computes; a file of its own, so that settings need no torch."""

from __future__ import annotations

from typing import Literal

Precision = Literal["fp32", "bf16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
