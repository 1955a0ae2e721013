"""The streams that the campaign interrupts: real commands on real files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: What two runs on the same input must have in common, byte for byte. run.json and report.html
#: tell times and paths.
SAME_BYTES = (
    "assignments.parquet",
    "categories.json",
    "rejected.csv",
    "state/state.json",
    "state/state.safetensors",
)
KNOWN = ("cat", "dog", "car", "tree", "house", "fish", "bird", "boat")


@dataclass(frozen=True)
class Case:
    """A ``ttgcd discover`` command without its output folder."""

    name: str
    arguments: tuple[str, ...]

    def command(self, out: Path, *more: str) -> list[str]:
        return ["discover", *self.arguments, "--out", str(out), "--quiet", *more]


def embeddings_case(folder: Path, samples: int = 360, shuffle: bool = False) -> Case:
    """Precomputed embeddings: no encoder, so the runs are short and many."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(len(KNOWN) + 4, 32))
    rows = centres[rng.integers(0, len(centres), samples)] + 0.8 * rng.normal(size=(samples, 32))
    np.save(folder / "rows.npy", rows.astype(np.float32))
    np.save(folder / "anchors.npy", centres[: len(KNOWN)].astype(np.float32))
    arguments = [
        str(folder / "rows.npy"),
        *("--anchors", str(folder / "anchors.npy"), "--known", ",".join(KNOWN)),
        *("--novel", "4", "--warmup", "100", "--batch-size", "12", "--threads", "1"),
    ]
    return Case("shuffled embeddings" if shuffle else "embeddings", _shuffled(arguments, shuffle))


def images_case(folder: Path, samples: int = 160, shuffle: bool = False) -> Case:
    """Pictures in a folder, some of them broken, and a small random CLIP: the warm-up trains."""
    pictures, model = folder / "pictures", folder / "clip"
    if not pictures.exists():
        _write_pictures(pictures, samples)
    if not model.exists():
        from tests.vlm.checkpoints import write_clip

        write_clip(model)
    arguments = [
        str(pictures),
        *("--model", str(model), "--known", ",".join(KNOWN), "--vocabulary", "none"),
        *("--preset", "paper", "--novel", "4", "--warmup", "72", "--epochs", "5"),
        *("--optimiser", "adam"),
        *("--batch-size", "16", "--threads", "1"),
    ]
    return Case("shuffled images" if shuffle else "images", _shuffled(arguments, shuffle))


def _shuffled(arguments: Sequence[str], shuffle: bool) -> tuple[str, ...]:
    return (*arguments, "--seed", "5") if shuffle else (*arguments, "--in-order")


def _write_pictures(folder: Path, samples: int) -> None:
    folder.mkdir(parents=True)
    pictures = icons(samples)
    for number, data in enumerate(pictures):
        (folder / f"{number:04d}.png").write_bytes(data)
    (folder / "0003.png").write_bytes(pictures[3][:100])
    (folder / f"{samples - 9:04d}.png").write_bytes(b"")
    (folder / f"{samples - 1:04d}.png").write_bytes(b"this is a text, whatever its name")


def icons(count: int) -> list[bytes]:
    """Pictures of the package's own icon set."""
    import pyarrow.parquet as pq

    from ttgcd.data import path

    table = pq.read_table(path("iconshift", "emoji.parquet"), columns=["image"])
    return table.slice(0, count).column("image").to_pylist()
