"""What is exported: the rows of a run together with where their images are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttgcd.discovery.levels import LevelName, check_level
from ttgcd.errors import InputError
from ttgcd.streams.base import Source
from ttgcd.streams.files import Files, is_inside
from ttgcd.streams.remote import is_address


@dataclass(frozen=True)
class Item:
    """One image of a run and the category it has, edits included."""

    id: str
    category: int
    kind: str
    name: str
    row: dict[str, Any]  # the whole row of assignments.parquet


@dataclass(frozen=True)
class Exported:
    """What an export wrote, and what it left out and why."""

    target: Path
    images: int
    notes: tuple[str, ...] = ()


class Items:
    """The rows of a run in stream order, and the source that their images are read from."""

    def __init__(self, out: Path, items: list[Item], source: str | Path | None, note: str) -> None:
        self.out = out
        self._items = items
        self._given = source
        self._note = note
        self._opened: Source | None = None
        self._positions: dict[str, int] = {}

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def notes(self) -> tuple[str, ...]:
        return (self._note,) if self._note else ()

    # -- images -------------------------------------------------------------------------------

    def source(self) -> Source:
        """The source, opened when the first image is asked for; every row must be in it."""
        if self._opened is None:
            from ttgcd.streams.open import open_source

            source = open_source(self._location())
            if source.kind != "images":
                source.close()
                raise InputError(
                    "the run read embeddings: there are no images to export, use `to=csv`"
                )
            positions = {source.id(position): position for position in range(len(source))}
            missing = [item.id for item in self._items if item.id not in positions]
            if missing:
                source.close()
                raise InputError(
                    f"{len(missing)} images of the run are not in {str(self._location())!r}, the "
                    f"first: {missing[0]!r}. Give the place of the images with `source=...`"
                )
            self._opened, self._positions = source, positions
        return self._opened

    def _location(self) -> str | Path:
        if self._given is not None:
            return self._given
        try:
            record = json.loads((self.out / "run.json").read_text(encoding="utf-8"))
            location = record["input"].get("source")
        except (OSError, ValueError, KeyError, AttributeError):
            location = None
        if not isinstance(location, str):
            raise InputError(
                f"{str(self.out)!r} does not tell where its images are: give their place with "
                "`source=...`"
            )
        return location

    def path(self, item: Item) -> Path:
        """The image's own file; an InputError when the source is not made of files."""
        source = self.source()
        path = source.path(self._positions[item.id]) if isinstance(source, Files) else ""
        if not path or is_address(path):
            raise InputError(
                "the images of this run are not files of their own here (tar, parquet, arrays or "
                "an address): use `how=copy`, imagefolder or webdataset"
            )
        return Path(path)

    def bytes_of(self, item: Item) -> tuple[bytes, str]:
        """An image's encoded bytes and its extension; pixels without a file become PNG."""
        source = self.source()
        try:
            data = source.read(self._positions[item.id])
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read image {item.id!r}: {error}") from None
        if isinstance(data, bytes):
            return data, extension(data, item.id)
        import io

        from PIL import Image

        buffer = io.BytesIO()
        Image.fromarray(data).save(buffer, "PNG")
        return buffer.getvalue(), ".png"

    def folder(self) -> Path:
        """The folder that the run read."""
        location = Path(self._location())
        if not location.is_dir():
            raise InputError(
                f"{str(location)!r} is no folder: sidecars go beside files, give a target"
            )
        return location

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    # -- where to -----------------------------------------------------------------------------

    def refuse_target(self, target: Path) -> None:
        """An InputError for a place that exists, or lies in the images or in the run's folder."""
        if os.path.lexists(target):
            raise InputError(
                f"{str(target)!r} exists: exports never overwrite, choose another `out=...`"
            )
        real = os.path.realpath(target)
        places = [str(self.out)]
        location = self._location_or_none()
        if location is not None and os.path.isdir(location):
            places.append(str(location))
        for place in places:
            if is_inside(real, os.path.realpath(place)):
                raise InputError(f"{str(target)!r} is inside {place!r}: choose a place beside it")
        if not Path(real).parent.is_dir():
            raise InputError(f"there is no folder {str(target.parent)!r}: make it first")

    def _location_or_none(self) -> str | Path | None:
        try:
            return self._location()
        except InputError:
            return None


def read_items(
    out: Path, source: str | Path | None, hidden: bool, level: LevelName | None = None
) -> Items:
    """The rows of a finished run, those of hidden categories left out unless wanted; at a
    ``level`` (default: the one that the run was asked to show) with the groups there."""
    import pyarrow.parquet as pq

    from ttgcd.discovery.edits import EditedFolder

    folder = EditedFolder(out)
    folder.follow()
    table = pq.read_table(out / "assignments.parquet")
    content = json.loads((out / "categories.json").read_text(encoding="utf-8"))
    level = (content.get("levels") or {}).get("shown") if level is None else check_level(level)
    found = "category"
    if level not in (None, "found"):
        from ttgcd.discovery.level_files import levels_of, table_at

        table, found = table_at(table, levels_of(out, folder.own_rows()).at(level)), "found"
    unwanted = set() if hidden else {c["id"] for c in content["categories"] if c.get("hidden")}
    items = [
        Item(row["id"], row["category"], row["kind"], row["name"], row)
        for row in table.to_pylist()
        if row[found] not in unwanted
    ]
    left = table.num_rows - len(items)
    if not items:
        raise InputError(f"{str(out)!r} has no image to export: all its categories are hidden")
    return Items(out, items, source, f"{left} images of hidden categories left out" * bool(left))


_MAGIC = (
    (b"\xff\xd8\xff", ".jpg"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"GIF8", ".gif"),
    (b"BM", ".bmp"),
    (b"II*\0", ".tif"),
    (b"MM\0*", ".tif"),
)


def extension(data: bytes, name: str) -> str:
    """What an image's bytes are; the name's own extension when they do not tell."""
    for magic, ending in _MAGIC:
        if data.startswith(magic):
            return ending
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ".webp"
    if data[4:12] in (b"ftypavif", b"ftypavis"):
        return ".avif"
    return Path(name).suffix.lower() or ".bin"
