"""CIFAR-10-C and CIFAR-100-C in their official files, or as `ttgcd corrupt` leaves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttgcd.corruptions import HELD_OUT, KINDS, SEVERITIES
from ttgcd.corruptions.files import META
from ttgcd.datasets.benchmark import Benchmark, find_root
from ttgcd.datasets.classes import class_names, load_split
from ttgcd.errors import InputError
from ttgcd.streams.arrays import Rows
from ttgcd.streams.base import Source

OFFICIAL_IMAGES = 10_000


class RowBlock(Source):
    """Consecutive images of one ``.npy`` file."""

    def __init__(self, path: Path, start: int, count: int, prefix: str) -> None:
        self._rows = Rows(str(path))
        self._start, self._count, self._prefix = start, count, prefix

    def __len__(self) -> int:
        return self._count

    def id(self, position: int) -> str:
        return f"{self._prefix}/{position:05d}"

    def read(self, position: int) -> np.ndarray:
        return self._rows.get(self._start + position, self._start + position + 1)[0]

    def read_many(self, positions: Sequence[int]) -> np.ndarray:
        return self._rows.take([self._start + position for position in positions])

    def fingerprint(self) -> str:
        return f"{self._rows.fingerprint()}:{self._start}+{self._count}"


@dataclass(frozen=True)
class Layout:
    """How the rows of the files are arranged: severity-major blocks of ``images`` rows."""

    severities: tuple[int, ...]
    images: int
    made_here: bool

    @property
    def rows(self) -> int:
        return self.images * len(self.severities)

    def start(self, severity: int, where: Path) -> int:
        if severity not in self.severities:
            raise InputError(
                f"{where} holds severities {', '.join(map(str, self.severities))}, not {severity}"
            )
        return self.severities.index(severity) * self.images


def read_layout(root: Path, labels: np.ndarray) -> Layout:
    """The layout that ``meta.json`` declares, or the official one: five equal blocks."""
    meta_path = root / META
    if meta_path.exists():
        try:
            meta = json.loads(meta_path.read_text("utf-8"))
            layout = Layout(tuple(meta["severities"]), int(meta["images"]), True)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{meta_path} is damaged ({error}): delete it only if the files have all five "
                "severities, else make the set again with `ttgcd corrupt`"
            ) from None
    else:
        layout = Layout(SEVERITIES, len(labels) // len(SEVERITIES), False)
    blocks = labels[: layout.rows].reshape(len(layout.severities), -1) if layout.images else None
    if len(labels) != layout.rows or blocks is None or (blocks != blocks[0]).any():
        raise InputError(
            f"{root / 'labels.npy'} has {len(labels)} rows that are not "
            f"{len(layout.severities)} equal blocks, one a severity: the official file has 50,000; "
            "get or make the set again"
        )
    return layout


def read_labels(root: Path, n_classes: int) -> np.ndarray:
    """The labels of all rows, checked against the number of classes."""
    path = root / "labels.npy"
    if not path.is_file():
        raise InputError(f"{path} is missing: it belongs to the official set")
    try:
        labels = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as an array ({error}): get it again") from None
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(
            f"{path} has shape {labels.shape} of {labels.dtype}: expected whole numbers"
        )
    if len(labels) and not (labels.min() >= 0 and labels.max() < n_classes):
        raise InputError(
            f"{path} has labels from {labels.min()} to {labels.max()}, outside the {n_classes} "
            "classes: is it the labels file of another dataset?"
        )
    return labels.astype(np.int64)


def usual_folders(dataset: str) -> tuple[str, ...]:
    """Names under which a corrupted CIFAR lies in a folder of datasets."""
    return (dataset.replace("cifar", "CIFAR-") + "-C", f"{dataset}-c", f"{dataset}c")


def load_cifar(name: str, root: Path | str | None, severity: int = 5) -> Benchmark:
    """CIFAR-10-C or CIFAR-100-C at one severity."""
    if severity not in SEVERITIES:
        raise InputError(f"severity is {severity!r}: it must be 1, 2, 3, 4 or 5")
    dataset = name.removesuffix("-c")
    folder = find_root(root, name, usual_folders(dataset), "labels.npy")
    classes = class_names(dataset)
    labels = read_labels(folder, len(classes))
    layout = read_layout(folder, labels)
    start = layout.start(severity, folder)

    def open_kind(kind: str) -> tuple[Source, np.ndarray]:
        path = folder / f"{kind}.npy"
        if not path.is_file():
            raise InputError(
                f"{path} is missing: get the official set, or make it with `ttgcd corrupt`"
            )
        shape = Rows(str(path)).shape
        if len(shape) != 4 or shape[1:] != (32, 32, 3) or shape[0] != layout.rows:
            raise InputError(
                f"{path} has shape {shape}, expected ({layout.rows}, 32, 32, 3): "
                "get or make it again"
            )
        block = RowBlock(path, start, layout.images, f"{kind}/{severity}")
        return block, labels[start : start + layout.images]

    return Benchmark(
        name, classes, load_split(dataset), KINDS, HELD_OUT, _notes(layout), opener=open_kind
    )


def _notes(layout: Layout) -> tuple[str, ...]:
    notes = []
    if layout.made_here:
        notes.append("corruptions made here: statistically like the published set, not the same")
    if layout.images != OFFICIAL_IMAGES:
        notes.append(f"{layout.images} images a stream; the official set has {OFFICIAL_IMAGES}")
    return tuple(notes)
