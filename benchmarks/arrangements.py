"""In which order, and which part of, a labelled stream a method gets to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Job:
    scenario: str
    benchmark: str
    stream: str
    method: str
    seed: int


@dataclass(frozen=True)
class Labelled:
    """Features in their order, true classes (the known ones first), and texts."""

    features: np.ndarray
    labels: np.ndarray
    anchors: np.ndarray
    words: np.ndarray
    scale: float

    @property
    def known(self) -> int:
        return len(self.anchors)

    @property
    def novel(self) -> int:
        return len(np.unique(self.labels[self.labels >= self.known]))

    def __getitem__(self, order: np.ndarray) -> Labelled:
        return replace(self, features=self.features[order], labels=self.labels[order])


Arrange = Callable[[Labelled, int, np.random.Generator], Labelled]


def shuffled(all_: Labelled, seed: int, rng: np.random.Generator) -> Labelled:
    return all_[rng.permutation(len(all_.labels))]


def by_class(all_: Labelled, seed: int, rng: np.random.Generator) -> Labelled:
    """A folder in its own order: class after class, the classes in a random order."""
    place = rng.permutation(int(all_.labels.max()) + 1)
    order = rng.permutation(len(all_.labels))
    return all_[order[np.argsort(place[all_.labels[order]], kind="stable")]]


def late(all_: Labelled, seed: int, rng: np.random.Generator) -> Labelled:
    """Three novel classes in ten appear only in the second half."""
    labels = all_.labels
    order, coming = rng.permutation(len(labels)), late_classes(all_, seed)
    early = order[~np.isin(labels[order], coming)][: len(order) // 2]
    return all_[np.concatenate([early, rng.permutation(np.setdiff1d(order, early))])]


def late_classes(all_: Labelled, seed: int) -> np.ndarray:
    """Other ones with every seed."""
    novel = np.unique(all_.labels[all_.labels >= all_.known])
    rng = np.random.default_rng(1 + seed)
    return rng.choice(novel, max(1, round(0.3 * len(novel))), replace=False)


def some_novel(count: int) -> Arrange:
    def arrange(all_: Labelled, seed: int, rng: np.random.Generator) -> Labelled:
        novel = np.unique(all_.labels[all_.labels >= all_.known])
        chosen = rng.choice(novel, min(count, len(novel)), replace=False)
        kept = np.flatnonzero((all_.labels < all_.known) | np.isin(all_.labels, chosen))
        return all_[rng.permutation(kept)]

    return arrange


def few_known(all_: Labelled, seed: int, rng: np.random.Generator) -> Labelled:
    """One name in five is known, two at least; the classes of the other names are novel as well."""
    named = np.sort(rng.choice(all_.known, max(2, all_.known // 5), replace=False))
    classes = int(all_.labels.max()) + 1
    place = np.empty(classes, np.int64)
    place[np.concatenate([named, np.setdiff1d(np.arange(classes), named)])] = np.arange(classes)
    fewer = replace(all_, labels=place[all_.labels], anchors=all_.anchors[named])
    return fewer[rng.permutation(len(fewer.labels))]


def long_tail(all_: Labelled, seed: int, rng: np.random.Generator) -> Labelled:
    """Class sizes fall to a tenth from the first to the last, in a random order of classes."""
    classes, kept = rng.permutation(np.unique(all_.labels)), []
    for rank, k in enumerate(classes):
        mine = rng.permutation(np.flatnonzero(all_.labels == k))
        share = 0.1 ** (rank / max(1, len(classes) - 1))
        kept.append(mine[: max(1, round(share * len(mine)))])
    return all_[rng.permutation(np.concatenate(kept))]


SCENARIOS: dict[str, Arrange] = {
    "shuffled": shuffled,
    "sorted": by_class,
    "late": late,
    "long tail": long_tail,
    "drift": shuffled,
    "few known": few_known,
    **{f"L = {count}": some_novel(count) for count in (0, 1, 3, 5, 20)},
    "orders": shuffled,
}
#: How many seeds are usual; 1 where nothing is said.
SEEDS = {"shuffled": 3, "late": 3, "long tail": 3, "orders": 20}
#: Scenarios that make sense on one benchmark only.
ONLY = {"L = 3": "cifar10-c", "L = 5": "iconshift", "L = 20": "iconshift", "late": "iconshift"}
#: What comes after each stream in the scenario whose style changes half-way.
SECOND = {"line": "emoji", "solid": "multicolour", "fog": "jpeg_compression", "frost": "contrast"}
#: Scenarios that are run on these streams only.
STREAMS = {"drift": tuple(SECOND), "orders": ("line", "emoji", "solid", "pixel", "fog", "frost")}


def load(folder: Path, benchmark: str, stream: str) -> Labelled:
    data = np.load(folder / f"{benchmark}-{stream}.npz")
    words, scale = data["words"][:1500], float(data["scale"])
    return Labelled(data["features"], data["labels"], data["anchors"], words, scale)


def arranged(folder: Path, job: Job) -> Labelled:
    """What the method of this job gets to see."""
    rng = np.random.default_rng(job.seed)
    first = SCENARIOS[job.scenario](load(folder, job.benchmark, job.stream), job.seed, rng)
    if job.scenario != "drift":
        return first
    other = load(folder, job.benchmark, SECOND[job.stream])
    then = other[rng.permutation(len(other.labels))[: len(first.labels)]]
    return replace(
        first,
        features=np.concatenate([first.features, then.features]),
        labels=np.concatenate([first.labels, then.labels]),
    )
