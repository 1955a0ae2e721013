"""What a site's own vocabulary is worth: the second half of a stream after the first was named.

    python benchmarks/promotion.py [--method scout] [--seeds 0,1,2]

IconShift styles that were not used for development, the embedded model's features. In the first
half every new category that shows mostly one class is named by a simulated user (one rename each;
a second category of the same class is merged into the first). Then the second half is answered
twice: afresh, with the same known names as before, and going on from the first half. All is the
clustering accuracy on the second half; "named" the share of its images that carry the right name.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from names import encode

import ttgcd
from ttgcd.datasets import load_benchmark
from ttgcd.evaluation import split_accuracy
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="scout")
    parser.add_argument("--seeds", default="0,1,2")
    args = parser.parse_args()
    vlm, bench = load_vlm("mini"), load_benchmark("iconshift", None)
    anchors = text_anchors(vlm, bench.known)
    names, n_known = [*bench.known, *bench.novel], len(bench.known)
    print("style        edits   afresh: All  named   going on: All  named")
    everything = []
    for style in STYLES:
        source, labels = bench.open_stream(style)
        features, rows = encode(vlm, source, None), []
        for seed in map(int, args.seeds.split(",")):
            order = np.random.default_rng(seed).permutation(len(features))
            first, second = np.array_split(order, 2)
            settings = {
                "known": bench.known,
                "anchors": anchors,
                "novel": len(bench.novel),
                "method": args.method,
                "seed": seed,
            }
            with tempfile.TemporaryDirectory() as work:
                found = ttgcd.discover(features[first], out=Path(work) / "first", **settings)
                edits = name_all(found, labels[first], names, n_known)
                afresh = ttgcd.discover(features[second], **settings)
                on = found.update(features[second])
                rows.append(
                    [
                        edits,
                        *judge(afresh, labels[second], names, n_known),
                        *judge(on, labels[second], names, n_known),
                    ]
                )
        everything += rows
        print(_line(style, rows), flush=True)
    print(_line("mean", everything))


def _line(name: str, rows: list[list[float]]) -> str:
    edits, all_0, named_0, all_1, named_1 = np.mean(rows, axis=0)
    return f"{name:<12} {edits:5.0f} {all_0:13.1f} {named_0:6.1f} {all_1:15.1f} {named_1:6.1f}"


if __name__ == "__main__":
    main()
