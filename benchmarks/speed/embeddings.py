"""A stream of embeddings from the file to the report: rate, memory, growth.

python -m benchmarks.speed.embeddings [--rows 300000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.speed.rows import PROCESSOR_TIME, Row, report

DIM, KNOWN, NOVEL = 512, 100, 50


def write(folder: Path, rows: int, categories: int = KNOWN + NOVEL) -> list[str]:
    """Unit rows around one direction a category; the arguments of a run on them."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(categories, DIM)).astype(np.float32)
    known = categories * 2 // 3
    stored = np.lib.format.open_memmap(
        folder / "stream.npy", mode="w+", dtype=np.float32, shape=(rows, DIM)
    )
    for begin in range(0, rows, 10_000):
        count = min(10_000, rows - begin)
        stored[begin : begin + count] = centres[rng.integers(0, categories, count)]
        stored[begin : begin + count] += rng.standard_normal((count, DIM), np.float32)
    stored.flush()
    np.save(folder / "anchors.npy", centres[:known])
    names = ",".join(f"thing {i}" for i in range(known))
    return ["discover", str(folder / "stream.npy"), "--anchors", str(folder / "anchors.npy"),
            "--known", names, "--novel", str(categories - known), "--vocabulary", "none",
            "--out", str(folder / "out"), "--overwrite", "--quiet"]  # fmt: skip


def measure(rows: int, categories: int = KNOWN + NOVEL) -> tuple[dict[str, float], float]:
    """Where the seconds of a run went, and the peak memory of its process in MB."""
    with tempfile.TemporaryDirectory() as name:
        words = write(Path(name), rows, categories)
        code = (
            "import resource, sys; from ttgcd.cli import main; assert main(sys.argv[1:]) == 0; "
            "spent = resource.getrusage(resource.RUSAGE_SELF); "
            "print('peak', spent.ru_maxrss, spent.ru_utime + spent.ru_stime)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words], check=True, capture_output=True, text=True
        )
        record = json.loads(Path(name, "out", "run.json").read_text(encoding="utf-8"))
    peak, processor = done.stdout.rsplit("peak", 1)[1].split()
    if PROCESSOR_TIME:
        record["seconds"]["total"] = float(processor)
    return record["seconds"], int(peak) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    _, small = measure(10_000)
    spent, peak = measure(args.rows)
    where = ", ".join(f"{part} {spent[part]:.1f} s" for part in spent if part != "total")
    rows = [
        Row(f"embeddings {args.rows:,} x {DIM}, {KNOWN + NOVEL} categories, all files written",
            100_000, "at least", args.rows / spent["total"], " samples/s", where),
        Row(f"peak memory of {args.rows:,} against 10,000 embeddings", 1.05, "at most",
            peak / small, note=f"{peak:.0f} MB"),
    ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
