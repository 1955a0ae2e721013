"""Where images come from: folders, lists, tar shards, parquet and arrays, as ordered batches."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch, Rejected, Rejection, Source
    from ttgcd.streams.labels import read_labels, read_names
    from ttgcd.streams.open import open_source
    from ttgcd.streams.stream import Stream

# Resolved on first use: reading names or labels must not wait for torch.
_HOMES = {
    "Batch": "base",
    "Rejected": "base",
    "Rejection": "base",
    "Source": "base",
    "Stream": "stream",
    "open_source": "open",
    "read_labels": "labels",
    "read_names": "labels",
}

__all__ = [
    "Batch",
    "Rejected",
    "Rejection",
    "Source",
    "Stream",
    "open_source",
    "read_labels",
    "read_names",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"ttgcd.streams.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ttgcd.streams' has no attribute {name!r}")
