"""The code blocks of a page, and the world they run in."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
SHELL, PYTHON = ("bash", "sh", "console"), ("python",)
_SKIP = re.compile(r"<!-- not run: (.+?) -->\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and why it is not run, if it is not."""

    page: str
    line: int
    language: str
    text: str
    not_run: str | None

    def commands(self) -> Iterator[str]:
        """The commands of a shell block, continuation lines joined, comments left out."""
        for line in self.text.replace("\\\n", " ").splitlines():
            line = re.sub(r"(^|\s)#.*$", "", line).strip()
            if line:
                yield line


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    inside: str | None = None
    start, reason = 0, None
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            if inside is None:
                inside, start = line[3:].strip().split(" ")[0], number
                before = [text for text in lines[: number - 1] if text.strip()][-1:]
                skip = _SKIP.search(before[0]) if before else None
                reason = skip[1] if skip else None
            else:
                text = "\n".join(lines[start : number - 1])
                page = path.relative_to(ROOT).as_posix()
                found.append(Block(page, start, inside, text, reason))
                inside = None
    assert inside is None, f"{path}: a block is not closed"
    return found


def calls(command: str) -> list[str] | None:
    """The arguments of a line that is one call of ``ttgcd``, else None."""
    words = shlex.split(command)
    alone = not {"|", ">", "&&", ";", "<"} & set(words)
    return words[1:] if words[0] == "ttgcd" and alone else None


def _jpeg(png: bytes) -> bytes:
    file = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def make_world(folder: Path) -> None:
    """What the commands of the documentation are about, very small."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.streams.conftest import write_tar
    from ttgcd.datasets.iconshift import load_iconshift
    from ttgcd.vlm import load_vlm
    from ttgcd.vlm.anchors import text_anchors

    source, classes = load_iconshift("line")
    chosen = [
        n
        for wanted in ("cat", "book", "star", "moon")
        for n in [at for at, name in enumerate(classes) if name == wanted][:9]
    ]
    data = [_jpeg(source.read(n)) for n in chosen]
    names = [classes[n] for n in chosen]
    for number, (image, name) in enumerate(zip(data, names)):
        path = folder / "photos" / name / f"{number:02d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image)
    ids = [f"{name}/{number:02d}.jpg" for number, name in enumerate(names)]
    rows = [f"{id},{name}" for id, name in zip(ids, names)]
    (folder / "labels.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    (folder / "names.txt").write_text("cat\nbook\n")
    (folder / "species.txt").write_text("hedgehog\nowl\nroe deer\n")
    (folder / "list.txt").write_text("\n".join(f"photos/{id}" for id in ids) + "\n")
    (folder / "shards").mkdir()
    for shard in range(2):
        members = [(f"{n:03d}.jpg", data[n]) for n in range(18 * shard, 18 * shard + 18)]
        write_tar(folder / "shards" / f"{shard:03d}.tar", members)
    (folder / "data").mkdir()
    pq.write_table(pa.table({"id": ids, "image": data}), folder / "data" / "train-0.parquet")
    rng = np.random.default_rng(0)
    np.save(folder / "images.npy", rng.integers(0, 256, (24, 32, 32, 3), np.uint8))
    anchors = text_anchors(load_vlm("mini"), ["cat", "book"])
    np.save(folder / "anchors.npy", anchors)
    np.save(folder / "embeddings.npy", rng.normal(size=(24, anchors.shape[1])).astype("f4"))
