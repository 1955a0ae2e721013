"""IconShift: icons in several drawing styles, and the same icons corrupted as they are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ttgcd.corruptions import HELD_OUT, KINDS, SEVERITIES, corrupt
from ttgcd.datasets.benchmark import Benchmark
from ttgcd.datasets.classes import Split
from ttgcd.errors import InputError
from ttgcd.streams.base import Source
from ttgcd.streams.decode import decode


class Corrupted(Source):
    """Another source, every image corrupted as it is read; ids stay the same."""

    def __init__(self, source: Source, kind: str, severity: int) -> None:
        self._source, self._kind, self._severity = source, kind, severity

    def __len__(self) -> int:
        return len(self._source)

    def id(self, position: int) -> str:
        return self._source.id(position)

    def read(self, position: int) -> np.ndarray:
        image = self._source.read(position)
        pixels = decode(image) if isinstance(image, bytes) else image
        # The seed is the image's place in the source, whatever the order of the stream.
        return corrupt(pixels, self._kind, self._severity, position)

    def signature(self, position: int) -> str:
        return f"{self._source.signature(position)} {self._kind} {self._severity}"


def load_iconshift_benchmark(
    name: str, root: Path | str | None = None, severity: int = 5
) -> Benchmark:
    """One stream a style, then one a corruption over the icons of all styles."""
    from ttgcd.datasets.iconshift import ALL, iconshift_classes, iconshift_domains, load_iconshift

    if severity not in SEVERITIES:
        raise InputError(f"severity is {severity!r}: it must be 1, 2, 3, 4 or 5")
    known, novel = iconshift_classes()
    classes = tuple(sorted(known + novel))
    number = {name: i for i, name in enumerate(classes)}
    split = Split(tuple(number[name] for name in known), tuple(number[name] for name in novel))
    domains = iconshift_domains()

    def open_stream(stream: str) -> tuple[Source, np.ndarray]:
        source, names = load_iconshift(stream if stream in domains else ALL)
        if stream not in domains:
            source = Corrupted(source, stream, severity)
        return source, np.array([number[name] for name in names])

    return Benchmark(name, classes, split, domains, HELD_OUT, further=KINDS, opener=open_stream)
