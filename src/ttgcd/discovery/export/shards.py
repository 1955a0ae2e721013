"""Tar shards as webdataset reads them: for each image its bytes, its class and its row."""

from __future__ import annotations

import io
import json
import tarfile
from itertools import islice
from pathlib import Path

from ttgcd.discovery.export.folders import numbered, whole
from ttgcd.discovery.export.items import Exported, Item, Items


def to_shards(items: Items, target: Path, size: int) -> Exported:
    """``target/shard-000000.tar`` ...: members 000000000.jpg, .cls (category id), .json (row)."""
    with whole(target) as unfinished:
        images = numbered(items)
        for number in range(-(-len(items) // size)):
            with tarfile.open(unfinished / f"shard-{number:06d}.tar", "w") as tar:
                for image in islice(images, size):
                    _add(tar, *image)
    return Exported(target, len(items), items.notes())


def _add(tar: tarfile.TarFile, number: int, item: Item, data: bytes, ending: str) -> None:
    parts = {
        ending: data,
        ".cls": str(item.category).encode(),
        ".json": json.dumps(item.row).encode(),
    }
    for suffix, content in parts.items():
        info = tarfile.TarInfo(f"{number:09d}{suffix}")  # no times: equal runs, equal bytes
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
