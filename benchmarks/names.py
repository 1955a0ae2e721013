"""How often the suggested names are right: IconShift's styles and CIFAR-10-C.

    python benchmarks/names.py                                   # IconShift, embedded model
    python benchmarks/names.py --benchmark cifar10-c --data data

Groups are those of k-means given K + L on the pretrained encoder's features, so that the figures
judge the names and not a method. A group counts when more than half of its members are of one novel
class (and it has five or more); its true name is that class's. "No good name" is right when the
first suggestion is not the true name, or the group is mixed. A true name that is not in the
vocabulary is a miss.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from ttgcd.data.words import vocabulary
from ttgcd.datasets import load_benchmark
from ttgcd.prototypes.naming import name_groups
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors
from ttgcd.vlm.base import VLM

DEVELOPMENT = {"iconshift": ("line", "emoji", "engraved")}
LEAST = 5


@dataclass
class Tally:
    """Groups of one stream by what was suggested for them."""

    groups: int = 0
    first: int = 0
    five: int = 0
    named: int = 0
    named_right: int = 0
    none: int = 0
    none_right: int = 0

    def row(self, name: str) -> str:
        def share(part: int, whole: int) -> str:
            return f"{100 * part / whole:5.1f}" if whole else "  n/a"

        return (
            f"{name:<20} {self.groups:>4}   {share(self.first, self.groups)}   "
            f"{share(self.five, self.groups)}   "
            f"{self.named:>4} {share(self.named_right, self.named)}   "
            f"{self.none:>4} {share(self.none_right, self.none)}"
        )


def encode(vlm: VLM, source: object, limit: int | None) -> np.ndarray:
    features = np.zeros((len(source), vlm.dim), np.float32)  # type: ignore[arg-type]
    seen = 0
    for batch in Stream(source, vlm.preprocess, 256, shuffle_seed=0):  # type: ignore[arg-type]
        features[list(batch.positions)] = vlm.encode_images(batch.images).detach().numpy()
        seen += len(batch)
        if limit is not None and seen >= limit:
            break
    return features


def judge(
    features: np.ndarray, labels: np.ndarray, names: list[str], n_known: int, words, texts
) -> Tally:
    groups = KMeans(len(names), n_init=3, random_state=0).fit_predict(features)
    majority, pure = {}, {}
    for group in range(len(names)):
        mine = labels[groups == group]
        if len(mine) >= LEAST:
            counts = np.bincount(mine, minlength=len(names))
            majority[group], pure[group] = int(counts.argmax()), counts.max() > len(mine) / 2
    wanted = [group for group, truth in majority.items() if truth >= n_known]
    found = name_groups(features, groups, wanted, words, texts, exclude=names[:n_known])
    tally = Tally()
    for group in wanted:
        its, truth = found[group], names[majority[group]].casefold()
        suggested = [word.casefold() for word in its.words]
        right = pure[group] and suggested[0] == truth
        if pure[group]:
            tally.groups += 1
            tally.first += right
            tally.five += truth in suggested
        if its.name is None:
            tally.none += 1
            tally.none_right += not right
        else:
            tally.named += 1
            tally.named_right += pure[group] and its.name.casefold() == truth
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", default="iconshift")
    parser.add_argument("--data", default="data", type=Path)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--limit", type=int, default=3000, help="images of each stream")
    args = parser.parse_args()
    vlm, bench = load_vlm(args.model), load_benchmark(args.benchmark, args.data)
    words = vocabulary()
    texts = text_anchors(vlm, words)
    names = [*bench.known, *bench.novel]
    there = {word.casefold() for word in words}
    inside = sum(name.casefold() in there for name in bench.novel)
    print(f"{len(words)} words, {inside} of {len(bench.novel)} novel names among them, {vlm.name}")
    print("stream             groups   top 1   top 5   named right   none right   (percent)")
    total, held = Tally(), Tally()
    for stream in bench.streams + bench.further:
        source, labels = bench.open_stream(stream)
        features = encode(vlm, source, args.limit)
        kept = features.any(axis=1)
        tally = judge(features[kept], labels[kept], names, len(bench.known), words, texts)
        print(tally.row(stream), flush=True)
        for sum_ in (
            (total, held) if stream not in DEVELOPMENT.get(args.benchmark, ()) else (total,)
        ):
            for field, value in vars(tally).items():
                setattr(sum_, field, getattr(sum_, field) + value)
    print(total.row("all"))
    print(held.row("not for development"))


if __name__ == "__main__":
    main()
