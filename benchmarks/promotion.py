"""What a site's own vocabulary is worth: the second half of a stream after the first was named.

    python benchmarks/promotion.py [--preset scout] [--seeds 0,1,2] [--styles duotone,...]

IconShift styles that were not used for development, the embedded model. In the first half every new
category that shows mostly one class is named by a simulated user (one rename each; a second one
of the same class is merged into the first). Then the second half is answered three times: afresh,
with the same known names as before; going on from the first half by looks alone, without the texts
of the new names; and going on as the product does, with both. All is the clustering accuracy on the
second half, "named" the share of its images that carry the right name. With ``--moves N`` the user
also puts N wrongly placed images of the first half right, and a fourth run goes on from that.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import ttgcd
from ttgcd.datasets import load_benchmark
from ttgcd.discovery import run_discovery
from ttgcd.discovery.saved import SavedRun
from ttgcd.evaluation import split_accuracy
from ttgcd.methods.base import Task

STYLES = ("duotone", "handdrawn", "multicolour", "pixel", "solid")


def name_all(found: ttgcd.Discovery, labels: np.ndarray, names: list[str], n_known: int) -> int:
    """The user's names for the new categories; how many edits it took."""
    rows = found.assignments()
    members: dict[int, list[int]] = {}
    for row in rows:
        members.setdefault(row["category"], []).append(int(labels[int(row["id"])]))
    given: dict[int, int] = {}
    for category in sorted(members, key=lambda c: -len(members[c])):
        if category < n_known:
            continue
        label, count = Counter(members[category]).most_common(1)[0]
        if count <= len(members[category]) / 2:
            continue
        if label < n_known:
            found.mark(category, label)
        elif label in given:
            found.merge(category, given[label])
        else:
            found.rename(category, names[label])
            given[label] = category
    return len(found.edits())


def judge(
    found: ttgcd.Discovery, labels: np.ndarray, names: list[str], n_known: int
) -> tuple[float, float]:
    """All, and the share of images with the right name, in percent."""
    rows = found.assignments()
    truth = labels[[int(row["id"]) for row in rows]]
    ids = {c: i for i, c in enumerate(sorted({row["category"] for row in rows}))}
    given = np.array([ids[row["category"]] for row in rows])
    right = np.mean([row["name"] == names[label] for row, label in zip(rows, truth)])
    return 100 * split_accuracy(given, truth, n_known).all, 100 * float(right)


class LooksOnly(SavedRun):
    """A run whose new names are not read by the next one."""

    def named_texts(self, task: Task, promoted: bool = False) -> dict[int, np.ndarray]:
        return {}


def put_right(found: ttgcd.Discovery, labels: np.ndarray, names: list[str], moves: int) -> None:
    """Move the first so many images that are not where their class is named."""
    place = {c.name: c.id for c in found.categories}
    for row in found.assignments():
        wanted = place.get(names[labels[int(row["id"])]])
        if moves and wanted is not None and wanted != row["category"]:
            found.move([row["id"]], wanted)
            moves -= 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="scout")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--styles", default=",".join(STYLES))
    parser.add_argument("--moves", type=int, default=0)
    args = parser.parse_args()
    bench = load_benchmark("iconshift", None)
    names, n_known = [*bench.known, *bench.novel], len(bench.known)
    kinds = ["afresh", "looks", "looks + text"] + [f"+ {args.moves} moves"] * bool(args.moves)
    print(f"{'style':<12} edits" + "".join(f"{kind + ': All':>19}  named" for kind in kinds))
    everything = []
    for style in args.styles.split(","):
        source, labels = bench.open_stream(style)
        images = [bytes(source.read(position)) for position in range(len(source))]
        rows = []
        for seed in map(int, args.seeds.split(",")):
            order = np.random.default_rng(seed).permutation(len(images))
            first, second = np.array_split(order, 2)
            rows.append(measure(args, images, labels, names, n_known, (first, second), seed))
        everything += rows
        print(_line(style, rows), flush=True)
    print(_line("mean", everything))


def measure(
    args: argparse.Namespace,
    images: list[bytes],
    labels: np.ndarray,
    names: list[str],
    n_known: int,
    halves: tuple[np.ndarray, np.ndarray],
    seed: int,
) -> list[float]:
    """Edits, then All and named of every way to answer the second half."""
    first, second = halves
    settings = {"known": names[:n_known], "novel": len(names) - n_known, "model": "mini"}
    settings |= {"preset": args.preset, "seed": seed, "vocabulary": "none"}
    if args.preset != "scout":
        settings["changes"] = {"epochs": 0, "warmup": 512}
    else:
        del settings["vocabulary"]
    later = [images[position] for position in second]
    with tempfile.TemporaryDirectory() as work:
        place = Path(work)
        found = ttgcd.discover([images[p] for p in first], out=place / "first", **settings)
        edits = name_all(found, labels[first], names, n_known)
        saved = LooksOnly(place / "first")
        answered = [
            ttgcd.discover(later, **settings),
            run_discovery(later, saved.settings, out=place / "looks", earlier=saved),
            found.update(later),
        ]
        if args.moves:
            put_right(found, labels[first], names, args.moves)
            answered.append(found.update(later))
        judged = [judge(one, labels[second], names, n_known) for one in answered]
    return [edits, *(figure for pair in judged for figure in pair)]


def _line(name: str, rows: list[list[float]]) -> str:
    edits, *figures = np.mean(rows, axis=0)
    pairs = zip(figures[::2], figures[1::2])
    return f"{name:<12} {edits:5.0f}" + "".join(f"{a:19.1f} {n:6.1f}" for a, n in pairs)


if __name__ == "__main__":
    main()
