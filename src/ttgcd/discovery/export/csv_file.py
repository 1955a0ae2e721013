"""The table as CSV (UTF-8, header, one row an image)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ttgcd.discovery.export.items import Exported, Items
from ttgcd.storage.durable import write_atomic, writing


def to_csv(items: Items, target: Path) -> Exported:
    """All columns of assignments.parquet in their order."""
    with writing(target.parent, "then export again"):
        write_atomic(target, as_csv(items))
    return Exported(target, len(items), items.notes())


def as_csv(items: Items) -> bytes:
    """The whole file."""
    text = io.StringIO(newline="")
    rows = [item.row for item in items]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # Ids of files whose names are no text hold lone surrogates; they are written as "?".
    return text.getvalue().encode("utf-8", "replace")
