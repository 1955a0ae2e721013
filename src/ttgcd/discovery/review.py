"""Answers that are too doubtful for a group go to a pile of their own, and on a list to look at."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.storage.durable import write_atomic, writing

#: The id of the pile; the method's own ids stay far below, those of splits begin above.
UNSURE = 999_999
FILE = "review.csv"


def check_abstain(abstain: float | None) -> None:
    """An InputError for a number that is no probability."""
    if abstain is not None and not 0.0 < abstain < 1.0:
        raise InputError(f"abstain must lie between 0 and 1, got {abstain}")


def check_judged(abstain: float | None, named: bool) -> None:
    """An InputError where doubtful answers are to go and there is no name to be in doubt about."""
    if abstain is not None and not named:
        raise InputError(
            "`abstain=...` goes by how likely a name is right, and nothing has a name yet: give "
            "names as `known=cat,dog`, or leave it out"
        )


def set_aside(out: Path, abstain: float) -> dict[str, Any] | None:
    """Move answers with a confidence below ``abstain`` to the category "unsure".

    ``review.csv`` lists them, most doubtful first, with the category that they would have had.
    Returns the pile's record for categories.json, None when nothing is doubtful.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = out / "assignments.parquet"
    table = pq.read_table(path)
    sure = table.column("confidence").to_numpy()
    doubtful = np.flatnonzero(sure < abstain)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "category", "kind", "name", "confidence"])
    order = doubtful[np.argsort(sure[doubtful], kind="stable")]
    columns = ("id", "category", "kind", "name")
    said = table.select(columns).take(order).to_pylist()
    for row, at in zip(said, order):
        writer.writerow([*(row[column] for column in columns), f"{sure[at]:.4f}"])
    aside = np.zeros(len(sure), bool)
    aside[doubtful] = True
    for name, value in (("category", UNSURE), ("kind", "unsure"), ("name", "unsure")):
        at_column = table.schema.get_field_index(name)
        given = np.where(aside, value, table.column(name).to_numpy(zero_copy_only=False))
        field = table.schema.field(at_column)
        table = table.set_column(at_column, field, pa.array(given, field.type))
    with writing(out):
        write_atomic(out / FILE, text.getvalue().encode("utf-8", "replace"))
        if len(doubtful):
            write_atomic(path, lambda file: pq.write_table(table, file, compression="zstd"))
    if not len(doubtful):
        return None
    return {
        "id": UNSURE,
        "kind": "unsure",
        "name": "unsure",
        "suggested_names": [],
        "count": len(doubtful),
        "exemplars": [row["id"] for row in said[:12]],
    }


def recounted(out: Path, categories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Category records with the counts and examples that are left after ``set_aside``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(out / "assignments.parquet", columns=["id", "category"])
    given = table.column("category").to_numpy()
    ids, counts = np.unique(given, return_counts=True)
    left = dict(zip(ids.tolist(), counts.tolist()))
    aside = set(table.column("id").filter(pa.array(given == UNSURE)).to_pylist())
    return [
        {
            **record,
            "count": left.get(record["id"], 0),
            "exemplars": [image for image in record["exemplars"] if image not in aside],
        }
        for record in categories
    ]
