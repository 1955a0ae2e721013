"""Every image of a run as a small picture: packed in sheets beside the page, loaded when looked at.

``OUT/report_files/`` holds the sheets and ``gallery.json``, which says whose picture is in which
cell. Cells are given once, when the run ends; an edit moves images between categories and leaves
their cells alone, so a page can be drawn again without a single picture being read.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from ttgcd.report.course import seed_rows
from ttgcd.report.run_files import RunFiles
from ttgcd.report.thumbnails import KeptThumbnails, thumbnail
from ttgcd.storage.durable import write_atomic
from ttgcd.streams.base import Source

FOLDER, INDEX, FORMAT = "report_files", "gallery.json", "ttgcd.gallery/2"
#: Pixels a picture, pictures a row and rows a sheet.
SIZE, COLUMNS, ROWS = 112, 8, 8
CELLS = COLUMNS * ROWS
#: A page of more pictures would take longer to open than to leave.
MOST_PICTURES = 50_000
#: Sheets of up to this many bytes together are also put into the page, which can then be mailed.
MOST_EMBEDDED = 1_500_000
_FRONT = 12  # pictures of a category that stand in front: its card shows them


@dataclass(frozen=True)
class Gallery:
    """Which samples (stream indexes) have a cell, in the order of the cells; and what else was
    worked out once from what is not in the run's files: the map, the
    reliability, the questions."""

    order: list[int]
    sheets: int = 0
    missing: list[int] = field(default_factory=list)  # cells without a picture
    projection: str = "none"
    points: list[tuple[float, float, int]] = field(default_factory=list)  # x, y, stream index
    reliability: list[tuple[float, float, int]] = field(default_factory=list)
    # What to ask the user: kind of question, categories, stream index of the image or None.
    questions: list[tuple[str, list[int], int | None]] = field(default_factory=list)

    def write(self, out: Path) -> None:
        text = json.dumps({"format": FORMAT, **vars(self)}, separators=(",", ":"))
        write_atomic(out / FOLDER / INDEX, (text + "\n").encode())

    @classmethod
    def read(cls, out: Path, samples: int) -> Gallery | None:
        """The gallery that an earlier report left; None if there is none for this table."""
        try:
            found = json.loads((out / FOLDER / INDEX).read_text(encoding="utf-8"))
            if found.pop("format") != FORMAT or max(found["order"], default=0) >= samples:
                return None
            return cls(**found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def addresses(self, out: Path) -> list[str]:
        """Where the page finds the sheets: in itself when they are small, else in the folder."""
        files = [out / FOLDER / _sheet(number) for number in range(self.sheets)]
        if not files or not all(file.exists() for file in files):
            return []
        if sum(file.stat().st_size for file in files) > MOST_EMBEDDED:
            return [f"{FOLDER}/{file.name}" for file in files]
        encoded = (base64.b64encode(file.read_bytes()).decode("ascii") for file in files)
        return [f"data:image/jpeg;base64,{data}" for data in encoded]


def begin_gallery(out: Path) -> None:
    """An empty folder for the pictures."""
    folder = out / FOLDER
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()


def picture_order(run: RunFiles, always: np.ndarray, most: int = MOST_PICTURES) -> list[int]:
    """Stream indexes in the order of their cells: category by category, the largest first.

    In a category: the exemplars, then the least typical and the most doubtful, then the rest by
    score, so that what a card shows stands in one sheet. A run of more than ``most`` samples keeps
    the front of every category and whatever is in ``always``.
    """
    position = run.ids.places(name for c in run.categories for name in c.exemplars)
    seeds = seed_rows(run)
    wanted = np.zeros(len(run), bool)
    wanted[always] = True
    kept: list[int] = []
    for c in sorted(run.categories, key=lambda c: (-run.counts.get(c.id, 0), c.id)):
        own = np.flatnonzero(run.category == c.id)
        front = [position[name] for name in c.exemplars if name in position][:_FRONT]
        # A seed's score of 1 is no sign of being typical: it counts as the middle of its group.
        others = run.score[own][~seeds[own]]
        middle = float(np.median(others)) if len(others) else 0.0
        fit = np.where(seeds[own], middle, run.score[own])
        by_score = own[np.argsort(-fit, kind="stable")]
        by_doubt = own[np.argsort(-run.doubt[own], kind="stable")]
        front = [at for at in front if run.category[at] == c.id]
        front += [*by_score[::-1][:6].tolist(), *by_doubt[:6].tolist()]
        quota = len(own)
        if len(run) > most:
            quota = max(2 * _FRONT, most * len(own) // len(run))
        order = list(dict.fromkeys([*front, *by_score[:quota].tolist()]))[:quota]
        if quota < len(own):
            order += by_score[wanted[by_score]].tolist()
        kept += dict.fromkeys(order)
    return kept


def pack(
    out: Path,
    run: RunFiles,
    source: Source,
    order: list[int],
    progress: Callable[[str, int, int], None],
    kept: KeptThumbnails | None = None,
) -> tuple[int, list[int]]:
    """Write the sheets; returns how many, and the cells whose picture could not be read again."""
    positions = {source.id(at): at for at in range(len(source))}
    places = [positions.get(name, -1) for name in run.ids.of(order)]
    firsts = range(0, len(order), CELLS)
    missing: list[int] = []

    def picture(at: int) -> np.ndarray | None:
        there = None if kept is None else kept.get(at)
        if there is None:
            made = thumbnail(source, at, SIZE)
            there = None if made is None else np.asarray(made)
        return there

    def sheet(first: int) -> list[int]:
        """One sheet; its cells without a picture."""
        pictures = [picture(at) for at in places[first : first + CELLS]]
        _write_sheet(out / FOLDER / _sheet(first // CELLS), pictures)
        return [first + i for i, made in enumerate(pictures) if made is None]

    with ThreadPoolExecutor(max_workers=4) as pool:  # Pillow leaves the interpreter lock alone
        for first, without in zip(firsts, pool.map(sheet, firsts)):
            missing += without
            progress("pictures", min(first + CELLS, len(order)), len(order))
    return len(firsts), missing


def _sheet(number: int) -> str:
    return f"{number:05d}.jpg"


def _write_sheet(path: Path, pictures: list[np.ndarray | None]) -> None:
    rows = max(1, -(-len(pictures) // COLUMNS))
    cells = np.full((rows, COLUMNS, SIZE, SIZE, 3), 128, np.uint8)
    for cell, picture in enumerate(pictures):
        if picture is not None:
            cells[divmod(cell, COLUMNS)] = picture
    pixels = cells.swapaxes(1, 2).reshape(rows * SIZE, COLUMNS * SIZE, 3)
    sheet = Image.fromarray(np.ascontiguousarray(pixels))
    # Ten times as fast as WebP, at half as many bytes again.
    sheet.save(path, "JPEG", quality=80)
