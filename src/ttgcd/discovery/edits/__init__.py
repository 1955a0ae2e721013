"""What people change in a run's result, kept as a log that every later run replays."""

from __future__ import annotations

from ttgcd.discovery.edits.folder import EditedFolder
from ttgcd.discovery.edits.records import Edit
from ttgcd.discovery.edits.replay import Replayed, apply

__all__ = ["Edit", "EditedFolder", "Replayed", "apply"]
