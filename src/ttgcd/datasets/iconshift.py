"""IconShift: the same things drawn by different hands, in styles the embedded model never saw.

The images ship with the package, one parquet file a domain, with the origin and licence of each.
"""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

from ttgcd import data
from ttgcd.errors import InputError
from ttgcd.streams.base import Source

ALL = "all"


class IconShift(Source):
    """Images of one domain, or of all, as lossless PNG bytes."""

    kind = "images"

    def __init__(self, ids: list[str], images: list[bytes]) -> None:
        self._ids, self._images = ids, images

    def __len__(self) -> int:
        return len(self._ids)

    def id(self, position: int) -> str:
        return self._ids[position]

    def read(self, position: int) -> bytes:
        return self._images[position]

    def signature(self, position: int) -> str:
        return hashlib.sha256(self._images[position]).hexdigest()


def _index() -> dict:
    return json.loads(data.path("iconshift", "index.json").read_text(encoding="utf-8"))


def iconshift_domains() -> tuple[str, ...]:
    """The style domains, in alphabetical order."""
    return tuple(sorted(_index()["domains"]))


def iconshift_classes() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The known and the novel class names."""
    split = json.loads(data.path("splits", "iconshift.json").read_text(encoding="utf-8"))
    return tuple(split["known"]), tuple(split["novel"])


def load_iconshift(domain: str) -> tuple[Source, list[str]]:
    """The images of a domain (``"all"``: of every domain) and their class names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    domains = iconshift_domains()
    if domain != ALL and domain not in domains:
        raise InputError(
            f"IconShift has no domain {domain!r}; choose one of {', '.join(domains)} or {ALL!r}"
        )
    wanted = domains if domain == ALL else (domain,)
    table = pa.concat_tables(
        pq.read_table(data.path("iconshift", f"{name}.parquet"), columns=["id", "class", "image"])
        for name in wanted
    )
    source = IconShift(table["id"].to_pylist(), table["image"].to_pylist())
    source.origin = f"IconShift, {domain}"
    return source, table["class"].to_pylist()


def write_folder(target: Path, domain: str) -> int:
    """Write a domain as PNG files, a folder for each class; returns how many.

    Beside the folder go the names of the known classes and the labels, by the ids that the files
    have as a folder of images.
    """
    source, classes = load_iconshift(domain)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{str(target)!r} is there already: choose a new folder")
    rows = []
    try:
        for position, name in enumerate(classes):
            folder = target / name.replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{position:04d}.png"
            path.write_bytes(source.read(position))  # type: ignore[arg-type]
            rows.append((path.relative_to(target).as_posix(), name))
        known = [name for name in iconshift_classes()[0] if name in set(classes)]
        target.with_name(f"{target.name}-known.txt").write_text("\n".join(known) + "\n", "utf-8")
        labels = target.with_name(f"{target.name}-labels.csv")
        with labels.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("id", "label"), *rows])
    except OSError as error:
        raise InputError(f"cannot write to {str(target)!r}: {error.strerror}") from None
    return len(rows)
