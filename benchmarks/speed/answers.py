"""What int8 costs in answers: mini on the domains of IconShift, through `ttgcd discover`.

python -m benchmarks.speed.answers [--seeds 3]
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ttgcd.cli import main as ttgcd
from ttgcd.datasets import load_benchmark


def accuracy(source: str, known: str, labels: Path, out: Path, *options: str) -> float:
    """All, in points."""
    words = ["discover", source, "--model", "mini", "--known", known, "--labels", str(labels),
             "--out", str(out), "--vocabulary", "none", "--quiet", "--overwrite",
             *options]  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        assert ttgcd(words) == 0
    return float(json.loads((out / "run.json").read_text(encoding="utf-8"))["scores"]["all"])


METHODS = {
    "scout": (),
    "paper, not re-aligned": ("--preset", "paper", "--epochs", "0", "--warmup", "128"),
}


class Lost(NamedTuple):
    """Points of All lost, averaged over domains and seeds, its standard error from the spread over
    seeds, and the points in the worst domain."""

    mean: float
    error: float
    worst: float


def lost_by_int8(method: str, seeds: int = 3) -> Lost:
    from ttgcd.data import path

    benchmark = load_benchmark("iconshift", Path("."))
    names = [*benchmark.known, *benchmark.novel]
    lost = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for domain in benchmark.streams:
            file = path("iconshift", f"{domain}.parquet")
            source, truth = benchmark.open_stream(domain)
            labels = folder / "labels.csv"
            with labels.open("w", newline="", encoding="utf-8") as out:
                rows = csv.writer(out)
                rows.writerow(["id", "label"])
                rows.writerows([source.id(i), names[label]] for i, label in enumerate(truth))
            options = ["--novel", str(len(benchmark.novel)), *METHODS[method]]
            points = [
                accuracy(str(file), ",".join(benchmark.known), labels, folder / "out",
                         *options, "--seed", str(seed), "--precision", precision)
                for precision in ("fp32", "int8")
                for seed in range(seeds)
            ]  # fmt: skip
            lost.append(np.array(points[:seeds]) - np.array(points[seeds:]))
    by_domain = np.array(lost)
    error = np.sqrt(by_domain.var(axis=1, ddof=1).mean() / by_domain.size) if seeds > 1 else np.nan
    worst = by_domain.mean(axis=1).max()
    return Lost(float(by_domain.mean()), float(error), float(worst))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    for method in METHODS:
        lost = lost_by_int8(method, seeds)
        print(
            f"All lost by int8, {method}: {lost.mean:+.2f} points, "
            f"standard error {lost.error:.2f}, worst domain {lost.worst:+.2f}"
        )


if __name__ == "__main__":
    main()
