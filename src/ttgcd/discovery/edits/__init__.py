"""What people change in a run's result, kept as a log that every later run replays.

Names are resolved on first use: a discovery has its verbs without what they need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttgcd.discovery.edits.folder import EditedFolder
    from ttgcd.discovery.edits.records import Edit
    from ttgcd.discovery.edits.replay import Replayed, apply

_HOMES = {"Edit": "records", "EditedFolder": "folder", "Replayed": "replay", "apply": "replay"}

__all__ = ["Edit", "EditedFolder", "Replayed", "apply"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
