"""How the cost of a sample grows with the stream and with the number of categories: a picture.

python -m benchmarks.speed.growth docs/img/growth.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.speed.embeddings import measure

LENGTHS = (20_000, 50_000, 100_000, 200_000)
CATEGORIES = (75, 150, 300, 600)


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "ttgcd"
    parts = ("input", "method", "sinks")
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    lengths = [(n, measure(n).parts) for n in LENGTHS]
    wide = [(k, measure(50_000, k).parts) for k in CATEGORIES]
    for axis, points, label, size in (
        (axes[0], lengths, "samples in the stream", None),
        (axes[1], wide, "categories, K + L", 50_000),
    ):
        base = [0.0] * len(points)
        for part in parts:
            micro = [1e6 * spent[part] / (size or at) for at, spent in points]
            top = [low + high for low, high in zip(base, micro)]
            axis.fill_between([at for at, _ in points], base, top, label=part, alpha=0.8)
            base = top
        axis.set_xlabel(label)
        axis.set_ylabel("microseconds a sample")
        axis.set_ylim(bottom=0)
        axis.legend(loc="lower right")
        for at, spent in points:
            print(label, at, {part: round(1e6 * spent[part] / (size or at), 1) for part in parts})
    figure.savefig(Path(sys.argv[1]), metadata={"Date": None})


if __name__ == "__main__":
    main()
