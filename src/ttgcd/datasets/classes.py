"""Class names and known/novel splits of the benchmarks, from the packaged data files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ttgcd import data
from ttgcd.errors import InputError

SPLIT_SEED = 0


def folder_names(dataset: str) -> tuple[str, ...]:
    """The lines of the names file as they stand: for DomainNet and CUB, names of folders."""
    text = data.path("names", f"{dataset}.txt").read_text(encoding="utf-8")
    return tuple(text.split("\n")[:-1])


def class_names(dataset: str, distinct: bool = False) -> tuple[str, ...]:
    """The display names in canonical id order.

    ImageNet's published list has two names twice, so two pairs of classes share a text anchor.
    ``distinct`` gives one of each pair its other WordNet name.
    """
    names = folder_names(dataset)
    if dataset == "cub":  # "001.Black_footed_Albatross"
        names = tuple(name.split(".", 1)[1] for name in names)
    names = tuple(name.replace("_", " ") for name in names)
    if distinct and dataset == "imagenet":
        other = json.loads(data.path("names", "imagenet_distinct.json").read_text("utf-8"))
        names = tuple(other.get(str(i), name) for i, name in enumerate(names))
    return names


@dataclass(frozen=True)
class Split:
    """Which classes are known: canonical ids, in the order of the category ids."""

    known: tuple[int, ...]
    novel: tuple[int, ...]

    def categories(self) -> np.ndarray:
        """The category id of every canonical class id: known 0..K-1, novel K.. ."""
        order = np.array(self.known + self.novel)
        categories = np.empty(len(order), dtype=np.int64)
        categories[order] = np.arange(len(order))
        return categories


def make_split(n_classes: int, seed: int = SPLIT_SEED) -> Split:
    """Known classes are the first half (rounded down) of a seeded permutation."""
    order = [int(i) for i in np.random.RandomState(seed).permutation(n_classes)]
    return Split(tuple(order[: n_classes // 2]), tuple(order[n_classes // 2 :]))


def load_split(dataset: str) -> Split:
    """The stored split that all methods, streams and run seeds share."""
    stored = json.loads(data.path("splits", f"{dataset}.json").read_text("utf-8"))
    return Split(tuple(stored["known_ids"]), tuple(stored["novel_ids"]))


def split_record(dataset: str, names: Sequence[str], split: Split, seed: int) -> dict[str, object]:
    """What a split file holds."""
    return {
        "dataset": dataset,
        "seed": seed,
        "rule": "known = first floor(C/2) of numpy RandomState(seed).permutation(C)",
        "known": [names[i] for i in split.known],
        "novel": [names[i] for i in split.novel],
        "known_ids": list(split.known),
        "novel_ids": list(split.novel),
    }


def split_by_names(names: Sequence[str], known: Sequence[str]) -> Split:
    """The split in which exactly the given names are known, in the given order."""
    position = {name: i for i, name in enumerate(names)}
    missing = [name for name in known if name not in position]
    if missing:
        raise InputError(f"known class {missing[0]!r} is not a class of this dataset")
    if len(set(known)) != len(known):
        raise InputError("a known class is given twice: list every class once")
    ids = tuple(position[name] for name in known)
    return Split(ids, tuple(i for i in range(len(names)) if i not in set(ids)))
