"""The fifteen evaluation corruptions, the four held-out ones, five severities, seeded per image."""

from __future__ import annotations

from ttgcd.corruptions.apply import constants_for, corrupt
from ttgcd.corruptions.constants import ALL_KINDS, CONSTANTS, HELD_OUT, KINDS, SEVERITIES

__all__ = [
    "ALL_KINDS",
    "CONSTANTS",
    "HELD_OUT",
    "KINDS",
    "SEVERITIES",
    "constants_for",
    "corrupt",
]
