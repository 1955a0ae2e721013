"""Thousands of categories: accuracy, bound, seconds and peak memory, beside mini-batch k-means.

    python -m benchmarks.many --categories 5000 --rows 200000
    python -m benchmarks.many --categories 5000 --rows 200000 --known 0 --counted
    python -m benchmarks.many --table

The rows are features made for this: unit directions, one a category, each row one of them plus as
much noise (``--noise``) as there is direction; as many rows of each category, in random order. The
names lie near the first categories. The bound is the share of rows that lie nearest to their own
true mean. ``scout`` is `ttgcd discover` from the file to the report, told K and L (or not:
``--counted``); k-means is scikit-learn's, told K + L, and sees all rows at once. Each runs in a
process of its own. Accuracy: known rows must get their class, novel ones are matched (Hungarian).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

DIM, BLOCK = 512, 5000
SCOUT = "from ttgcd.cli import main; assert main(sys.argv[1:]) == 0"
KMEANS = """
import numpy as np
from sklearn.cluster import MiniBatchKMeans
rows, out, count, seed = np.load(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
means = MiniBatchKMeans(count, batch_size=max(4096, count), n_init=1, random_state=seed)
np.save(out, means.fit_predict(rows))
"""
#: The peak is that of the process's own memory, which ``ru_maxrss`` is not.
MEASURED = """
import sys, time, resource
began = time.perf_counter()
{code}
spent = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print("measured", time.perf_counter() - began, spent.ru_utime + spent.ru_stime, peak)
"""


def write(folder: Path, args: argparse.Namespace) -> tuple[np.ndarray, float]:
    """The stream and the names in files; the true categories and the bound."""
    rng = np.random.default_rng(args.seed)
    means = _unit(rng.standard_normal((args.categories, DIM), np.float32))
    true = rng.permutation(np.arange(args.rows) % args.categories)
    stored = np.lib.format.open_memmap(
        folder / "rows.npy", mode="w+", dtype=np.float32, shape=(args.rows, DIM)
    )
    right = 0
    for start in range(0, args.rows, BLOCK):
        mine = true[start : start + BLOCK]
        noise = args.noise * rng.standard_normal((len(mine), DIM), np.float32) / DIM**0.5
        rows = _unit(means[mine] + noise)
        right += int(((rows @ means.T).argmax(axis=1) == mine).sum())
        stored[start : start + BLOCK] = rows
    stored.flush()
    names = means[: args.known]
    names = _unit(names + 0.5 * rng.standard_normal(names.shape, np.float32) / DIM**0.5)
    np.save(folder / "names.npy", names)
    return true, right / args.rows


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measured(code: str, words: list[str]) -> dict[str, float]:
    """Seconds that passed, processor seconds and peak GB of a process."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED.format(code=code), *words],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, processor, peak = done.stdout.rsplit("measured", 1)[1].split()[:3]
    spent = {"seconds": float(seconds), "cpu_seconds": float(processor), "gb": int(peak) / 2**20}
    return {name: round(value, 2) for name, value in spent.items()}


def accuracy(said: np.ndarray, true: np.ndarray, known: int) -> float:
    """Share of rows that are right: of known classes by their id, of others by the best matching
    of the other ids."""
    import scipy.sparse as sparse
    from scipy.optimize import linear_sum_assignment

    shape = (int(said.max()) + 1, int(true.max()) + 1)
    shared = sparse.csr_matrix((np.ones(len(true)), (said, true)), shape=shape).toarray()
    right = shared.diagonal()[:known].sum()
    novel = shared[known:, known:]
    return float(right + novel[linear_sum_assignment(-novel)].sum()) / len(true)


def scout(folder: Path, args: argparse.Namespace, true: np.ndarray) -> dict[str, Any]:
    import pyarrow.parquet as parquet

    words = ["discover", str(folder / "rows.npy"), "--vocabulary", "none", "--quiet"]
    words += ["--out", str(folder / "out"), "--overwrite", "--seed", str(args.seed)]
    if args.known:
        names = ",".join(f"thing {k}" for k in range(args.known))
        words += ["--known", names, "--anchors", str(folder / "names.npy")]
    if not args.counted:
        words += ["--novel", str(args.categories - args.known)]
    spent = measured(SCOUT, words)
    table = parquet.read_table(folder / "out" / "assignments.parquet")
    said = np.empty(len(true), np.int64)
    said[np.asarray(table["id"]).astype(np.int64)] = np.asarray(table["category"])
    found = len(np.unique(said))
    return {"accuracy": accuracy(said, true, args.known), "found": found, **spent}


def kmeans(folder: Path, args: argparse.Namespace, true: np.ndarray) -> dict[str, Any]:
    out = folder / "labels.npy"
    words = [str(folder / "rows.npy"), str(out), str(args.categories), str(args.seed)]
    spent = measured(KMEANS, words)
    return {"accuracy": accuracy(np.load(out), true, 0), "found": args.categories, **spent}


def table(rows: list[dict[str, Any]]) -> str:
    heads = ["categories", "rows", "names", "told", "what", "accuracy", "bound", "found"]
    heads += ["seconds", "processor seconds", "peak GB"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---:|" * len(heads)]
    for row in rows:
        cells = [f"{row['categories']:,}", f"{row['rows']:,}", str(row["known"])]
        cells += ["yes" if row["told"] else "no", row["what"]]
        cells += [f"{100 * row['accuracy']:.1f}", f"{100 * row['bound']:.1f}", f"{row['found']:,}"]
        cells += [f"{row['seconds']:,.0f}", f"{row['cpu_seconds']:,.0f}", f"{row['gb']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.many", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--categories", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--known", type=int, default=100, help="of the categories, with a name")
    parser.add_argument("--counted", action="store_true", help="scout is not told L")
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("scout", "k-means"), help="one of the two")
    parser.add_argument("--out", type=Path, default=Path("results/many.jsonl"))
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    args = parser.parse_args()
    if args.table:
        lines = args.out.read_text(encoding="utf-8").splitlines()
        print(table([json.loads(line) for line in lines]))
        return
    with tempfile.TemporaryDirectory() as name:
        true, bound = write(Path(name), args)
        given = ("categories", "rows", "known", "noise", "seed")
        facts = {key: getattr(args, key) for key in given}
        facts |= {"bound": bound, "cores": os.cpu_count()}
        found = []
        for what, arm in (("scout", scout), ("k-means", kmeans)):
            if args.only in (None, what):
                told = what == "k-means" or not args.counted
                found.append({**facts, "what": what, "told": told, **arm(Path(name), args, true)})
                with args.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found[-1]) + "\n")
        print(table(found))


if __name__ == "__main__":
    main()
