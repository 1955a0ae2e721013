"""How the cost of a sample grows with the stream and with the number of categories: a picture.

    python -m benchmarks.speed.growth docs/img/growth.svg

Processor time of all threads, less that of a stream of two thousand samples (starting, the report).
Scout's fits, which grow with the logarithm of the stream, are part of it.
"""

from __future__ import annotations

import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from benchmarks.speed.embeddings import KNOWN, METHODS, NOVEL, run, write

LENGTHS = (25_000, 50_000, 100_000, 200_000)
CATEGORIES = (75, 150, 300, 600)
LENGTH, START = 50_000, 2_000


@lru_cache
def processor_time(rows: int, categories: int, options: tuple[str, ...]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return run([*write(Path(folder), rows, categories), *options]).processor


def microseconds(rows: int, categories: int, options: tuple[str, ...]) -> float:
    """Processor time that a sample costs."""
    start = processor_time(START, categories, options)
    return 1e6 * (processor_time(rows, categories, options) - start) / (rows - START)


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "ttgcd"
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
    for name, options in METHODS.items():
        lengths = [microseconds(n, KNOWN + NOVEL, options) for n in LENGTHS]
        wide = [microseconds(LENGTH, k, options) for k in CATEGORIES]
        axes[0].plot(LENGTHS, lengths, marker="o", label=name)
        axes[1].plot(CATEGORIES, wide, marker="o", label=name)
        print(name, dict(zip(LENGTHS, lengths)), dict(zip(CATEGORIES, wide)))
    axes[0].set_xlabel(f"samples in the stream ({KNOWN + NOVEL} categories)")
    axes[1].set_xlabel(f"categories, K + L ({LENGTH:,} samples)")
    axes[0].set_xticks(LENGTHS, [f"{n // 1000}k" for n in LENGTHS])
    axes[1].set_xticks(CATEGORIES)
    axes[0].set_ylabel("µs of processor a sample")
    axes[0].set_ylim(bottom=0)
    axes[0].legend()
    figure.savefig(Path(sys.argv[1]), metadata={"Date": None})


if __name__ == "__main__":
    main()
