"""Discovery tasks drawn from packs: which classes are known, which hidden, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ttgcd.bench.packs import Pack, Words, packs_in, read_pack, read_words
from ttgcd.errors import InputError

Size = tuple[int, int]  # known, novel

#: Sizes that the published table has; known classes are drawn from those that have a text.
SIZES: dict[str, list[Size]] = {
    "whurs19_CLIP_ViT-B-32": [(9, 10), (4, 15), (15, 4), (12, 0)],
    "whurs19_CLIP_RN50": [(9, 10), (4, 15)],
    "whurs19_GeoRSCLIP_ViT-L-14": [(9, 10), (4, 15)],
    "whurs19_RemoteCLIP_ViT-B-32": [(9, 10), (14, 5)],
    "imagenet_half": [(250, 250), (50, 50), (20, 20), (10, 40), (40, 10), (50, 0), (5, 5)],
    "cifar10_500": [(5, 5), (3, 7), (8, 2)],
    "caltech101": [(50, 50), (20, 20), (30, 70), (5, 10), (20, 0), (30, 3)],
    "food101": [(16, 30), (16, 85), (10, 3)],
    "ucf101": [(6, 20), (6, 95), (3, 5)],
}
#: Numbers of classes of the tasks without any name.
NAMELESS: dict[str, list[int]] = {
    "imagenet_half": [50, 250],
    "caltech101": [40, 100],
    "food101": [46, 101],
    "ucf101": [26, 101],
    "dtd": [47],
    "cifar10_500": [10],
    "whurs19_CLIP_RN50": [19],
    "whurs19_GeoRSCLIP_ViT-L-14": [19],
}


@dataclass(frozen=True)
class TaskKey:
    """One task of one pack; ``known`` is 0 where no name is given."""

    folder: Path
    pack: str
    known: int
    novel: int

    def __str__(self) -> str:
        return f"{self.pack}:{self.known}+{self.novel}"


@dataclass(frozen=True)
class Drawn:
    """A task: rows in a random order, true classes (known 0..K-1, then novel), texts.

    ``words`` is without what gives a novel class's name away, None where there is no vocabulary.
    """

    features: np.ndarray
    labels: np.ndarray
    anchors: np.ndarray
    novel: int
    words: Words | None
    logit_scale: float

    @property
    def known(self) -> int:
        return len(self.anchors)


def tasks_of(folders: list[Path]) -> Iterator[TaskKey]:
    """All tasks of all packs: those of the table above, else the data set's own split, else halves
    and quarters; then the tasks without names."""
    seen: dict[str, Path] = {}
    for folder in folders:
        for path in packs_in(folder):
            if path.stem in seen:
                raise InputError(f"{path} and {seen[path.stem]} have one name: rename one")
            seen[path.stem] = path
            for known, novel in sizes(_pack(path)):
                yield TaskKey(folder, path.stem, known, novel)


def sizes(pack: Pack) -> list[Size]:
    present = len(pack.present())
    if pack.name in SIZES or pack.name in NAMELESS:
        return SIZES.get(pack.name, []) + [(0, count) for count in NAMELESS.get(pack.name, [])]
    if pack.known is not None:
        novel = len(np.setdiff1d(pack.present(), pack.known))
        return [(len(pack.known), novel), (0, present)]
    named = min(len(pack.with_text()), present)
    some = {k for k in (named // 2, named // 4) if 0 < k < present}
    return [(k, present - k) for k in sorted(some, reverse=True)] + [(0, present)]


@lru_cache(maxsize=4)
def draw(task: TaskKey, seed: int) -> Drawn:
    """The seed decides which classes are known, which take part, and the order."""
    pack = _pack(task.folder / f"{task.pack}.npz")
    if task.known == 0:
        order, rows = _without_names(pack, task, seed)
    elif pack.known is not None:
        order, rows = _own_split(pack, task, seed)
    else:
        order, rows = _with_names(pack, task, seed)
    ids = _ids(order, len(pack.names))
    hidden = tuple(pack.names[c] for c in order[task.known :])
    words = read_words(task.folder, pack.model)
    return Drawn(
        features=pack.features[rows],
        labels=ids[pack.labels[rows]],
        anchors=pack.texts[order[: task.known]],
        novel=task.novel,
        words=None if words is None else words.without(hidden),
        logit_scale=pack.logit_scale,
    )


def _with_names(pack: Pack, task: TaskKey, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Known classes among those that have a text, hidden ones among all others."""
    rng = np.random.default_rng((seed, task.known, task.novel))
    known = rng.permutation(pack.with_text())[: task.known]
    novel = rng.permutation(np.setdiff1d(pack.present(), known))[: task.novel]
    if (len(known), len(novel)) != (task.known, task.novel):
        raise InputError(
            f"{task}: the pack has {len(pack.with_text())} classes with a text and "
            f"{len(pack.present())} with rows: too few"
        )
    order = np.concatenate([known, novel])
    return order, rng.permutation(_rows(pack, order))


def _own_split(pack: Pack, task: TaskKey, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The data set's own known classes; the seed decides the order alone."""
    known = np.array(pack.known, np.int64)
    order = np.concatenate([known, np.setdiff1d(pack.present(), known)])
    rng = np.random.default_rng((seed, task.known, task.novel))
    return order, rng.permutation(_rows(pack, order))


def _without_names(pack: Pack, task: TaskKey, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some classes, none of them named."""
    rng = np.random.default_rng(seed)
    order = np.sort(rng.permutation(pack.present())[: task.novel])
    if len(order) != task.novel:
        raise InputError(f"{task}: the pack shows {len(pack.present())} classes: too few")
    return order, rng.permutation(_rows(pack, order))


def _rows(pack: Pack, classes: np.ndarray) -> np.ndarray:
    return np.flatnonzero(_ids(classes, len(pack.names))[pack.labels] >= 0)


def _ids(order: np.ndarray, count: int) -> np.ndarray:
    """The place of every class in an order; -1 for classes that take no part."""
    ids = np.full(count, -1)
    ids[order] = np.arange(len(order))
    return ids


@lru_cache(maxsize=2)
def _pack(path: Path) -> Pack:
    return read_pack(path)
