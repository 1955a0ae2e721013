"""A folder of pictures and a finished run over it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from tests.discovery.edits.runs import finished_run


def photo_run(base: Path, n: int = 12) -> tuple[Path, Path]:
    """(folder of n small JPEG and PNG files, half of them in a sub-folder; a run over it)."""
    out = finished_run(base / "found", n=n)
    photos = base / "photos"
    (photos / "trip" / "day 1").mkdir(parents=True)
    rng = np.random.default_rng(0)
    names = []
    for i in range(n):
        name = f"trip/day 1/img-{i:02d}.png" if i % 2 else f"img-{i:02d}.png"
        pixels = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(photos / name)
        names.append(name)
    _rename(out, names)
    (out / "run.json").write_text(json.dumps({"input": {"source": str(photos)}}), "utf-8")
    return photos, out


def _rename(out: Path, names: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(out / "assignments.parquet")
    table = table.set_column(0, table.schema.field(0), pa.array(names))
    pq.write_table(table, out / "assignments.parquet", compression="zstd")
    path = out / "categories.json"
    record = json.loads(path.read_text("utf-8"))
    for category in record["categories"]:
        category["exemplars"] = []
    path.write_text(json.dumps(record), "utf-8")
