"""Small made-up streams and their answers, for the report's tests."""

from __future__ import annotations

import io
from html.parser import HTMLParser

import numpy as np
from PIL import Image

from ttgcd.methods.answer import Answer
from ttgcd.report import StreamSummary
from ttgcd.streams.base import Batch, Source


class Coloured(Source):
    """One plain coloured PNG a position; every seventh is damaged."""

    def __init__(self, n: int = 1000, prefix: str = "img") -> None:
        self.n, self.prefix = n, prefix

    def __len__(self) -> int:
        return self.n

    def id(self, position: int) -> str:
        return f"{self.prefix}-{position}"

    def read(self, position: int) -> bytes:
        if position % 7 == 6:
            return b"not a picture"
        buffer = io.BytesIO()
        Image.new("RGB", (40, 30), (position % 256, 90, 200)).save(buffer, "PNG")
        return buffer.getvalue()


def batch(start: int, n: int, prefix: str = "img") -> Batch:
    index = range(start, start + n)
    return Batch(tuple(f"{prefix}-{i}" for i in index), start, tuple(index), start + n)


def answers(start: int, n: int, categories: int, seed: int = 0, final: bool = True) -> Answer:
    """Reproducible answers: those of a sample depend on its index alone."""
    rows = [np.random.default_rng([seed, i]) for i in range(start, start + n)]
    features = np.stack([rng.standard_normal(16) for rng in rows]).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    category = np.array([rng.integers(categories) for rng in rows])
    score = np.array([rng.random() for rng in rows])
    return Answer.make(start, category, score, final=final, features=features)


def summarise(
    n_known: int, n_novel: int, samples: int, step: int = 50, prefix: str = "img"
) -> StreamSummary:
    summary = StreamSummary(n_known, n_novel, map_points=40)
    for start in range(0, samples, step):
        n = min(step, samples - start)
        summary.write(batch(start, n, prefix), answers(start, n, n_known + n_novel))
    return summary


def records(summary: StreamSummary, name: str = "{}") -> list[dict]:
    """What categories.json would hold."""
    return [
        {
            "id": c,
            "kind": "known" if c < summary.n_known else "novel",
            "name": name.format(f"class {c}"),
            "suggested_names": [name.format("thing")] if c >= summary.n_known else [],
            "count": int(count),
            "exemplars": summary.exemplars(c),
            "evidence": 2.5 if c < summary.n_known else None,
            "active": True,
        }
        for c, count in enumerate(summary.counts)
    ]


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
