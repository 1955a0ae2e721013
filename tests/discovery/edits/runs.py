"""Small finished runs to edit, without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ttgcd.engines.table import schema

KNOWN = ("cat", "dog")


def rows(n: int = 12, novel: int = 3, seed: int = 0) -> pa.Table:
    """Random answers for images img-00.png, img-01.png, ..."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, len(KNOWN) + novel, n)
    names = [*KNOWN, *(f"novel {i + 1}" for i in range(novel))]
    columns: dict[str, Any] = {
        "id": [f"img-{i:02d}.png" for i in range(n)],
        "category": category,
        "kind": ["known" if c < len(KNOWN) else "novel" for c in category],
        "name": [names[c] for c in category],
        "score": rng.random(n),
        "margin": rng.random(n),
        "batch": np.zeros(n, int),
        "revised": np.zeros(n, bool),
        "novelty": rng.random(n),
    }
    wanted = schema()
    columns["confidence"] = rng.random(n)
    return pa.table({name: columns[name] for name in wanted.names}, schema=wanted)


def records(table: pa.Table, novel: int = 3) -> list[dict[str, Any]]:
    category = table.column("category").to_numpy()
    ids = table.column("id").to_pylist()
    found = []
    for c in range(len(KNOWN) + novel):
        mine = np.flatnonzero(category == c)
        found.append(
            {
                "id": c,
                "kind": "known" if c < len(KNOWN) else "novel",
                "name": KNOWN[c] if c < len(KNOWN) else f"novel {c - len(KNOWN) + 1}",
                "suggested_names": [],
                "count": len(mine),
                "exemplars": [ids[i] for i in mine[:4]],
            }
        )
    return found


def finished_run(out: Path, n: int = 12, novel: int = 3, seed: int = 0) -> Path:
    """A folder as a finished run leaves it."""
    (out / "state").mkdir(parents=True)
    table = rows(n, novel, seed)
    pq.write_table(table, out / "assignments.parquet", compression="zstd")
    text = json.dumps({"format": 1, "categories": records(table, novel)}, indent=2)
    (out / "categories.json").write_text(text + "\n", "utf-8")
    (out / "state" / "state.json").write_text("{}", "utf-8")
    (out / "run.json").write_text("{}", "utf-8")
    return out


def look_alikes(out: Path, sets: list[list[str]]) -> None:
    """Features for a run's images: those of one set look alike, every other image like none."""
    ids = pq.read_table(out / "assignments.parquet").column("id").to_pylist()
    place = {image: number for number, images in enumerate(sets) for image in images}
    rows = np.zeros((len(ids), len(sets) + len(ids)), np.float16)
    for row, image in enumerate(ids):
        rows[row, place.get(image, len(sets) + row)] = 1.0
    np.save(out / "state" / "features.npy", rows)


def contents(out: Path) -> dict[str, bytes]:
    """The bytes of the files that edits may change."""
    names = ("assignments.parquet", "categories.json", "report.html")
    return {name: (out / name).read_bytes() for name in names if (out / name).exists()}


def categories(out: Path) -> dict[int, dict[str, Any]]:
    found = json.loads((out / "categories.json").read_text("utf-8"))["categories"]
    return {record["id"]: record for record in found}


def answers(out: Path) -> dict[str, tuple[int, str, str]]:
    table = pq.read_table(out / "assignments.parquet").to_pylist()
    return {row["id"]: (row["category"], row["kind"], row["name"]) for row in table}
