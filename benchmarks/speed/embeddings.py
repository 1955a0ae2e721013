"""A stream of embeddings from the file to the report: rate, memory, growth.

    python -m benchmarks.speed.embeddings [--rows 1000000] [--dim 512] [--half]

Ten million rows: `--rows 10000000 --dim 64`. `--profile` shows where the main thread's time goes
instead, e.g. `--rows 200000 --profile`.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.speed.rows import PROCESSOR_TIME, Row, report
from ttgcd.prototypes.calibration import DIRECTIONS

DIM, KNOWN, NOVEL = 512, 100, 50
METHODS = {"scout, the default": (), "paper": ("--preset", "paper")}

#: The peak is that of the process's own memory: `ru_maxrss` would count that of the process which
#: started it, and that one has just written the stream.
CODE = """
import resource, sys
from ttgcd.cli import main
assert main(sys.argv[1:]) == 0
spent = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print("peak", peak, spent.ru_utime + spent.ru_stime)
"""


@dataclass(frozen=True)
class Spent:
    """Seconds of a run: that passed from the command to its end, of all threads' work, and by part;
    peak memory in MB."""

    passed: float
    processor: float
    parts: dict[str, float]
    peak: float

    def where(self) -> str:
        said = [f"{part} {seconds:.1f}" for part, seconds in self.parts.items() if part != "total"]
        rest = self.passed - sum(s for part, s in self.parts.items() if part != "total")
        return ", ".join([*said, f"start, tables, report {rest:.1f}"]) + " s passed"


def write(
    folder: Path,
    rows: int,
    categories: int = KNOWN + NOVEL,
    dim: int = DIM,
    dtype: type = np.float32,
) -> list[str]:
    """Rows around one direction a category; the arguments of a run on them."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(categories, dim)).astype(np.float32)
    known = categories * 2 // 3
    stored = np.lib.format.open_memmap(
        folder / "stream.npy", mode="w+", dtype=dtype, shape=(rows, dim)
    )
    for begin in range(0, rows, 10_000):
        count = min(10_000, rows - begin)
        part = centres[rng.integers(0, categories, count)]
        stored[begin : begin + count] = part + rng.standard_normal((count, dim), np.float32)
    stored.flush()
    np.save(folder / "anchors.npy", centres[:known])
    names = ",".join(f"thing {i}" for i in range(known))
    return ["discover", str(folder / "stream.npy"), "--anchors", str(folder / "anchors.npy"),
            "--known", names, "--novel", str(categories - known), "--vocabulary", "none",
            "--out", str(folder / "out"), "--overwrite", "--quiet"]  # fmt: skip


def run(words: list[str]) -> Spent:
    """One run in a process of its own."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], check=True, capture_output=True, text=True
    )
    passed = time.perf_counter() - began
    out = Path(words[words.index("--out") + 1])
    parts = json.loads((out / "run.json").read_text(encoding="utf-8"))["seconds"]
    peak, processor = done.stdout.rsplit("peak", 1)[1].split()[:2]
    return Spent(passed, float(processor), parts, int(peak) / 1024)


def products(rows: int, dim: int, method: str) -> float:
    """Seconds of the matrix products alone that a run cannot do without, on all cores.

    `paper` compares every sample with names and prototypes, Scout maps it to its directions and
    compares it with names, centres and words, on arrival and at the end; confidence compares it
    with names and categories.
    """
    categories, directions = KNOWN + NOVEL, min(DIRECTIONS, dim)
    once = [(dim, KNOWN), (dim, categories)]
    if method != "paper":
        once += [(dim, directions), (directions, categories)]
        once *= 2
    shapes = [*once, (dim, KNOWN), (dim, categories)]
    block, repeats, total = 4096, 20, 0.0
    for depth, width in shapes:
        left, right = np.ones((block, depth), np.float32), np.ones((depth, width), np.float32)
        left @ right
        began = time.perf_counter()
        for _ in range(repeats):
            left @ right
        total += (time.perf_counter() - began) / repeats * rows / block
    return total


def profile(words: list[str], lines: int = 25) -> None:
    """The functions in which the main thread spends its time."""
    from ttgcd.cli import main as command

    profiler = cProfile.Profile()
    profiler.runcall(command, words)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--half", action="store_true", help="float16")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    dtype = np.float16 if args.half else np.float32
    if args.profile:
        with tempfile.TemporaryDirectory() as folder:
            words = write(Path(folder), args.rows, dim=args.dim, dtype=dtype)
            for name, options in METHODS.items():
                print(name)
                profile([*words, *options])
        return
    rows = []
    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        small = write(Path(few), 10_000, dim=args.dim, dtype=dtype)
        large = write(Path(many), args.rows, dim=args.dim, dtype=dtype)
        for name, options in METHODS.items():
            base, spent = run([*small, *options]), run([*large, *options])
            took = spent.processor if PROCESSOR_TIME else spent.passed
            what = f"embeddings {args.rows:,} x {args.dim}, {KNOWN + NOVEL} categories, {name}"
            rows += [
                Row(f"{what}, all files written", 100_000, "at least", args.rows / took,
                    " samples/s", f"{spent.where()}; the matrix products alone, on all cores: "
                    f"{products(args.rows, args.dim, name):.1f} s"),
                Row(f"its peak memory against that of 10,000 embeddings, {name}", 1.05, "at most",
                    spent.peak / base.peak, note=f"{spent.peak:.0f} MB against {base.peak:.0f} MB"),
            ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
