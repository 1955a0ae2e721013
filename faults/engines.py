"""The Ray engine beside the local one on whole inputs: are the files the same, byte for byte?

    python -m faults.engines [--method scout] [--workers 2] [--cifar CIFAR-10-C/fog.npy]

Runs `ttgcd discover` with either engine on IconShift's largest domain, on generated embeddings, and
on tar shards of CIFAR-10-C images (when given). Exit code 1 if a file differs.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np

from faults.world import SAME_BYTES

_KNOWN = ",".join(f"thing {number}" for number in range(20))
_PER_SHARD = 1000
_METHODS = {"scout": (), "pact": ("--preset", "paper", "--epochs", "2")}


def write_embeddings(folder: Path, count: int) -> list[str]:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 64))
    rows = centres[rng.integers(0, 40, count)] + 1.2 * rng.normal(size=(count, 64))
    np.save(folder / "rows.npy", rows.astype(np.float32))
    np.save(folder / "anchors.npy", centres[:20].astype(np.float32))
    return [str(folder / "rows.npy"), "--anchors", str(folder / "anchors.npy"), "--known", _KNOWN]


def write_shards(folder: Path, images: np.ndarray) -> list[str]:
    """Tar shards of PNG files, one of them damaged."""
    from PIL import Image

    for begin in range(0, len(images), _PER_SHARD):
        with tarfile.open(folder / f"shard-{begin // _PER_SHARD:03d}.tar", "w") as archive:
            for number in range(begin, min(begin + _PER_SHARD, len(images))):
                buffer = io.BytesIO()
                Image.fromarray(images[number]).save(buffer, "PNG")
                data = buffer.getvalue()[: 50 if number == 2345 else None]
                info = tarfile.TarInfo(f"{number:06d}.png")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    known = "airplane,automobile,bird,cat,deer"
    return [str(folder), "--known", known, "--model", "mini"]


def compare(name: str, inputs: list[str], work: Path, workers: int, method: str) -> int:
    """How many files differ."""
    engines = {"local": [], "ray": ["--engine", "ray", "--workers", str(workers)]}
    for engine, options in engines.items():
        command = [
            *(sys.executable, "-m", "ttgcd", "discover", *inputs, "--novel", "5"),
            *(*_METHODS[method], "--quiet", "--threads", "1"),
            *("--out", str(work / f"{name}-{engine}"), *options),
        ]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        print(f"{name}: {engine} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    local, ray = (work / f"{name}-{engine}" for engine in engines)
    differ = [
        file for file in SAME_BYTES if (local / file).read_bytes() != (ray / file).read_bytes()
    ]
    samples = sum(1 for _ in _ids(local))
    verdict = f"{', '.join(differ)} differ" if differ else f"all {len(SAME_BYTES)} files the same"
    print(f"{name}: {samples:,} samples, {method}, {workers} workers, {verdict}", flush=True)
    return len(differ)


def _ids(out: Path) -> list[str]:
    import pyarrow.parquet as pq

    return pq.read_table(out / "assignments.parquet").column("id").to_pylist()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.engines")
    parser.add_argument("--method", choices=tuple(_METHODS), default="scout")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--embeddings", type=int, default=200_000)
    parser.add_argument("--cifar", type=Path, help="uint8 images (N, 32, 32, 3) as .npy")
    parser.add_argument("--limit", type=int, default=10_000, help="of the CIFAR images")
    args = parser.parse_args()
    from ttgcd.data import path

    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        how = (work, args.workers, args.method)
        bad += compare("embeddings", write_embeddings(work, args.embeddings), *how)
        icons = [str(path("iconshift", "line.parquet")), "--known", "cat,dog,car,tree,house"]
        bad += compare("IconShift", [*icons, "--model", "mini"], *how)
        if args.cifar is not None:
            shards = work / "shards"
            shards.mkdir()
            images = np.load(args.cifar, mmap_mode="r")[: args.limit]
            bad += compare("tar shards", write_shards(shards, images), *how)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
