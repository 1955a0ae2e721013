"""IconShift: icons in several drawing styles, and the same icons corrupted as they are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ttgcd import data
from ttgcd.corruptions import HELD_OUT, KINDS, SEVERITIES, corrupt
from ttgcd.errors import InputError
from ttgcd.streams.base import Source
from ttgcd.streams.datasets.benchmark import Benchmark
from ttgcd.streams.datasets.classes import Split, split_by_names


class ImagesInMemory(Source):
    """Images held as one uint8 array, corrupted on the way out if asked; ids stay the same."""

    def __init__(
        self, images: np.ndarray, ids: Sequence[str], kind: str | None = None, severity: int = 5
    ) -> None:
        self._images, self._ids = images, tuple(ids)
        self._kind, self._severity = kind, severity

    def __len__(self) -> int:
        return len(self._images)

    def id(self, position: int) -> str:
        return self._ids[position]

    def read(self, position: int) -> np.ndarray:
        image = self._images[position]
        if self._kind is None:
            return image
        # The seed is the image's place among all images, whatever the order of the stream.
        return corrupt(image, self._kind, self._severity, position)

    def signature(self, position: int) -> str:
        return f"{self._kind} {self._severity}"


def load_iconshift_benchmark(
    name: str, root: Path | str | None = None, severity: int = 5
) -> Benchmark:
    """One stream a style, then one a corruption over the icons of all styles."""
    from ttgcd.streams.iconshift import iconshift_classes, iconshift_domains, load_iconshift

    if severity not in SEVERITIES:
        raise InputError(f"severity is {severity!r}: it must be 1, 2, 3, 4 or 5")
    classes, domains = tuple(iconshift_classes()), tuple(iconshift_domains())

    def open_stream(stream: str) -> tuple[Source, np.ndarray]:
        parts = [load_iconshift(d) for d in (domains if stream not in domains else (stream,))]
        images = np.concatenate([part[0] for part in parts])
        labels = np.concatenate([part[1] for part in parts])
        ids = [i for part in parts for i in part[2]]
        kind = None if stream in domains else stream
        return ImagesInMemory(images, ids, kind, severity), labels

    return Benchmark(name, classes, _split(classes), domains + KINDS, HELD_OUT, opener=open_stream)


def _split(classes: Sequence[str]) -> Split:
    """The stored split, by names."""
    stored = json.loads(data.path("splits", "iconshift.json").read_text("utf-8"))
    known = split_by_names(classes, stored["known"])
    novel = split_by_names(classes, stored["novel"])
    if set(known.novel) != set(novel.known):
        raise InputError("splits/iconshift.json does not divide the classes of IconShift")
    return Split(known.known, novel.known)
