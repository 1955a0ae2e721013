"""Runs for the report's tests: real ones through the front door, made-up ones for their size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from ttgcd.engines.table import schema


def write_run(
    out: Path,
    category: np.ndarray,
    known: Sequence[str] = ("a", "b", "c"),
    novel: int = 2,
    *,
    ids: Sequence[str] | None = None,
    score: np.ndarray | None = None,
    novelty: np.ndarray | None = None,
    suggested: Sequence[str] = (),
    rejected: Sequence[tuple[str, str]] = (),
    warmup: int = 0,
    **record: Any,
) -> Path:
    """The files that a run over ``category`` would leave; ``record`` goes into run.json."""
    out.mkdir(parents=True, exist_ok=True)
    category = np.asarray(category)
    n, k = len(category), len(known)
    names = [*known, *(f"novel {i + 1}" for i in range(novel))]
    columns = {
        "id": list(ids) if ids is not None else [f"{i:05d}.png" for i in range(n)],
        "category": category,
        "kind": np.where(category < k, "known", "novel"),
        "name": [names[c] for c in category],
        "score": np.full(n, 0.5) if score is None else score,
        "margin": np.full(n, 0.5),
        "batch": np.arange(n) // 128,
        "revised": np.zeros(n, bool),
        "novelty": np.where(category < k, -0.1, 0.1) if novelty is None else novelty,
    }
    arrays = [pa.array(columns[field.name], field.type) for field in schema()]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema()), out / "assignments.parquet")
    categories = [
        {
            "id": c,
            "kind": "known" if c < k else "novel",
            "name": name,
            "suggested_names": list(suggested) if c >= k else [],
            "good_name": suggested[0] if c >= k and suggested else None,
            "count": int((category == c).sum()),
            "exemplars": [columns["id"][i] for i in np.flatnonzero(category == c)[:12]],
        }
        for c, name in enumerate(names)
    ]
    (out / "categories.json").write_text(json.dumps({"format": 1, "categories": categories}))
    run = {
        "settings": {"method": "pact", "preset": "paper", "config": {"warmup": warmup}},
        "input": {"kind": "images", "samples": n},
        "novel": novel,
        "health": {},
        "scores": None,
        "notes": [],
        **record,
    }
    (out / "run.json").write_text(json.dumps(run))
    lines = ["id,reason", *(",".join(pair) for pair in rejected)]
    (out / "rejected.csv").write_text("\n".join(lines) + "\n")
    return out


def write_pictures(folder: Path, ids: Sequence[str], side: int = 32) -> Path:
    """One plain coloured picture an id."""
    for i, name in enumerate(ids):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (side, side), (37 * i % 256, 90, 200)).save(path)
    return folder


class Page(HTMLParser):
    """Reads a page strictly: every element closed, in order."""

    VOID = frozenset(("meta", "img", "input", "br", "link", "hr"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    @classmethod
    def of(cls, out: Path) -> Page:
        return cls((out / "report.html").read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def words(self, tag: str) -> str:
        return " ".join(self.text.get(tag, []))

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script works on."""
        return json.loads(next(t for t in self.text["script"] if t.lstrip().startswith("{")))
