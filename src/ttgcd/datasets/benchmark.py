"""What a benchmark is: named classes, a split, and one stream per corruption or domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ttgcd.datasets.classes import Split
from ttgcd.errors import InputError
from ttgcd.streams.base import Source
from ttgcd.streams.files import Files

Opener = Callable[[str], tuple[Source, np.ndarray]]


@dataclass(frozen=True)
class Benchmark:
    """A dataset ready to be streamed.

    ``notes`` says how the data at hand differ from the published ones; print it with results.
    """

    name: str
    classes: tuple[str, ...]  # display names in canonical order
    split: Split
    streams: tuple[str, ...]  # the streams of the paper's tables, in their order
    held_out: tuple[str, ...] = ()  # streams for choosing hyper-parameters
    notes: tuple[str, ...] = ()
    further: tuple[str, ...] = ()  # streams that no table asks for, by name
    opener: Opener = field(repr=False, compare=False, kw_only=True)

    @property
    def known(self) -> tuple[str, ...]:
        """Known class names; their places are the category ids 0..K-1."""
        return tuple(self.classes[i] for i in self.split.known)

    @property
    def novel(self) -> tuple[str, ...]:
        """Novel class names; their places are the category ids minus K."""
        return tuple(self.classes[i] for i in self.split.novel)

    @property
    def every_stream(self) -> tuple[str, ...]:
        return self.streams + self.held_out + self.further

    def beside(self, stream: str) -> tuple[str, ...]:
        """The streams that a table with this one asks for."""
        kinds = (self.streams, self.held_out, self.further)
        return next((kind for kind in kinds if stream in kind), ())

    def open_stream(self, name: str) -> tuple[Source, np.ndarray]:
        """The images of one stream and their true category ids by position in the source."""
        if name not in self.every_stream:
            choices = ", ".join(self.every_stream)
            raise InputError(f"{self.name} has no stream {name!r}: choose from {choices}")
        source, ids = self.opener(name)
        ids = np.asarray(ids, dtype=np.int64)
        if len(ids) != len(source):
            raise InputError(
                f"{self.name}, stream {name}: {len(source)} images but {len(ids)} labels"
            )
        if len(ids) and not (ids.min() >= 0 and ids.max() < len(self.classes)):
            raise InputError(
                f"{self.name}, stream {name}: labels from {ids.min()} to {ids.max()} do not fit "
                f"the {len(self.classes)} classes; check labels and dataset name"
            )
        return source, self.split.categories()[ids]


def find_root(root: Path | str | None, name: str, folders: Sequence[str], marker: str) -> Path:
    """The dataset's folder: ``root`` itself or one of the usual names inside it.

    ``marker`` is a glob pattern that only the dataset's own folder satisfies.
    """
    if root is None:
        raise InputError(f"{name} needs the folder that holds it: give its path")
    root = Path(root)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder: give the folder that holds {name}")
    for candidate in (*(root / folder for folder in folders), root):
        if candidate.is_dir() and any(candidate.glob(marker)):
            return candidate
    raise InputError(
        f"no {name} in {root}: looked for {marker} there and in {', '.join(folders)}; "
        f"`ttgcd data verify {name} {root}` says what is expected"
    )


def open_files(
    root: Path, relative: Sequence[str], ids: Sequence[int]
) -> tuple[Source, np.ndarray]:
    """Image files below ``root`` as a source, with their class ids."""
    paths = [str(root / name) for name in relative]
    return Files(paths, list(relative)), np.asarray(ids, dtype=np.int64)


def images_in(folder: Path) -> list[str]:
    """Names of the image files directly in a folder, sorted; hidden files are left out."""
    from ttgcd.streams.formats import EXTENSIONS

    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
    return sorted(
        name
        for name in names
        if not name.startswith(".") and Path(name).suffix.lower() in EXTENSIONS
    )
