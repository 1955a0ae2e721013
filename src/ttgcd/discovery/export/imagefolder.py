"""What ``datasets.load_dataset("imagefolder", data_dir=...)`` reads.

Labels stand in ``metadata.jsonl`` and files are numbered: `datasets` looks for the words train,
test and validation in folder and file names and would make a split of a category called "test".
"""

from __future__ import annotations

import json
from pathlib import Path

from ttgcd.discovery.export.folders import numbered, whole
from ttgcd.discovery.export.items import Exported, Items

#: Columns beside the image; ``label`` is the category's name.
_COLUMNS = ("id", "category", "kind", "score", "confidence")


def to_imagefolder(items: Items, target: Path) -> Exported:
    """``target/train/000000.jpg`` ... and ``target/train/metadata.jsonl``."""
    with whole(target) as unfinished:
        folder = unfinished / "train"
        folder.mkdir()
        with open(folder / "metadata.jsonl", "w", encoding="utf-8", newline="\n") as lines:
            for number, item, data, ending in numbered(items):
                name = f"{number:06d}{ending}"
                (folder / name).write_bytes(data)
                beside = {key: item.row[key] for key in _COLUMNS if key in item.row}
                line = {"file_name": name, "label": item.name, **beside}
                lines.write(json.dumps(line) + "\n")
    return Exported(target, len(items), items.notes())
