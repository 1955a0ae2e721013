"""A run's result in other people's tools."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ttgcd.discovery.export.items import Exported, Item, Items, read_items
from ttgcd.discovery.export.moving import move_back
from ttgcd.errors import InputError

__all__ = ["FORMATS", "Choices", "Exported", "Item", "export", "move_back"]

How = Literal["link", "symlink", "copy", "move"]


@dataclass(frozen=True)
class Choices:
    """What can be chosen about an export.

    Parameters
    ----------
    how: what ``folders`` does with the files: hard link, symbolic link, copy or move.
    keep_folders: keep the sub-folders of the source inside each category's folder.
    hidden: export categories that were hidden, too.
    shard: images in one tar file of ``webdataset``.
    url_prefix: what stands before an image's path in the tasks of ``labelstudio``; the default is
        that of Label Studio's own local storage.
    """

    how: How = "link"
    keep_folders: bool = False
    hidden: bool = False
    shard: int = 1000
    url_prefix: str = "/data/local-files/?d="


def _folders(items: Items, target: Path, choices: Choices) -> Exported:
    from ttgcd.discovery.export.folders import to_folders

    return to_folders(items, target, choices.how, choices.keep_folders)


def _csv(items: Items, target: Path, choices: Choices) -> Exported:
    from ttgcd.discovery.export.csv_file import to_csv

    return to_csv(items, target)


def _imagefolder(items: Items, target: Path, choices: Choices) -> Exported:
    from ttgcd.discovery.export.imagefolder import to_imagefolder

    return to_imagefolder(items, target)


def _labelstudio(items: Items, target: Path, choices: Choices) -> Exported:
    from ttgcd.discovery.export.labelstudio import to_labelstudio

    return to_labelstudio(items, target, choices.url_prefix)


def _xmp(items: Items, target: Path, choices: Choices) -> Exported:
    from ttgcd.discovery.export.xmp import to_xmp

    return to_xmp(items, target)


def _webdataset(items: Items, target: Path, choices: Choices) -> Exported:
    from ttgcd.discovery.export.shards import to_shards

    return to_shards(items, target, choices.shard)


FORMATS: dict[str, Callable[[Items, Path, Choices], Exported]] = {
    "folders": _folders,
    "csv": _csv,
    "imagefolder": _imagefolder,
    "labelstudio": _labelstudio,
    "xmp": _xmp,
    "webdataset": _webdataset,
}


def export(
    out: str | Path,
    to: str,
    target: str | Path | None = None,
    source: str | Path | None = None,
    choices: Choices | None = None,
    **options: object,
) -> Exported:
    """Write the result in ``out`` for another tool.

    ``to`` is one of ``FORMATS``; ``target`` must not exist (default: ``out`` with ``-`` and the
    format, ``out.csv`` for CSV; ``xmp`` without a target writes beside the images); "-" is standard
    output, for CSV. ``source`` is where the images are,
    when they are no longer where the run read them. ``options`` are fields of ``Choices``.
    """
    if to not in FORMATS:
        raise InputError(f"cannot export to {to!r}: choose one of {', '.join(FORMATS)}")
    choices = replace(choices or Choices(), **options)  # type: ignore[arg-type]
    if choices.shard < 1:
        raise InputError(f"a shard holds 1 image or more, got {choices.shard}")
    items = read_items(Path(out), source, hidden=choices.hidden)
    try:
        if to == "xmp" and target is None:
            return FORMATS[to](items, items.folder(), choices)
        if str(target) == "-":
            return _to_standard_output(items, to)
        beside = f"{Path(out)}.csv" if to == "csv" else f"{Path(out)}-{to}"
        place = Path(target if target is not None else beside)
        items.refuse_target(place)
        return FORMATS[to](items, place, choices)
    finally:
        items.close()


def _to_standard_output(items: Items, to: str) -> Exported:
    from ttgcd.discovery.export.csv_file import as_csv

    if to != "csv":
        raise InputError(f"{to} makes a folder of files: only csv goes to standard output")
    sys.stdout.flush()
    sys.stdout.buffer.write(as_csv(items))
    sys.stdout.flush()
    return Exported(Path("-"), len(items), items.notes())
