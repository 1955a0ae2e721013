"""The table as CSV (UTF-8, header, one row an image)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ttgcd.discovery.export.items import Exported, Items
from ttgcd.storage.durable import write_atomic, writing


def to_csv(items: Items, target: Path) -> Exported:
    """All columns of assignments.parquet in their order."""
    text = io.StringIO(newline="")
    rows = [item.row for item in items]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with writing(target.parent, "then export again"):
        # Ids of files whose names are no text hold lone surrogates; they are written as "?".
        write_atomic(target, text.getvalue().encode("utf-8", "replace"))
    return Exported(target, len(items), items.notes())
