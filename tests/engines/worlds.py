"""Small streams and methods for the tests of the engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ttgcd.engines.folder import FolderRun, run_to_folder
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.streams.arrays import open_array
from ttgcd.streams.base import Rejection, Source
from ttgcd.streams.stream import Stream
from ttgcd.testing.model import TinyVLM, image_world

torch.set_num_threads(1)  # the models are so small that threads only wait for each other

RESULTS = ("assignments.parquet", "rejected.csv", "state/state.safetensors", "state/state.json")


def embeddings(count: int, dim: int = 16, classes: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, dim))
    rows = centres[rng.integers(0, classes, count)] + 0.3 * rng.normal(size=(count, dim))
    return rows.astype(np.float32)


def anchors(dim: int = 16, known: int = 4, seed: int = 0) -> np.ndarray:
    centres = np.random.default_rng(seed).normal(size=(6, dim))[:known]
    return (centres / np.linalg.norm(centres, axis=1, keepdims=True)).astype(np.float32)


def embedding_task(**changes: Any) -> Task:
    given = {"known": ("a", "b", "c", "d"), "anchors": anchors(), "novel": 2, **changes}
    return Task(**given)


def image_task(seed: int = 0) -> Task:
    vlm = TinyVLM(seed)
    known = ("red", "green", "blue")
    rows = vlm.encode_texts([f"a photo of a {name}." for name in known]).numpy()
    return Task(known=known, anchors=rows, novel=2, vlm=vlm)


def embedding_stream(
    data: np.ndarray, batch_size: int = 32, shuffle_seed: int | None = None
) -> Callable[[int, int], Stream]:
    def make(place: int, index: int) -> Stream:
        return Stream(open_array(data), None, batch_size, shuffle_seed, place, index, workers=0)

    return make


class Pictures(Source):
    """Images in memory under names; those in ``broken`` cannot be read."""

    kind = "images"

    def __init__(self, images: np.ndarray, names: list[str], broken: tuple[str, ...] = ()) -> None:
        self.images, self.names, self.broken = images, names, broken
        self.versions: dict[str, int] = {}

    @classmethod
    def make(cls, count: int, broken: tuple[str, ...] = ()) -> Pictures:
        images = image_world(count, 5)[0].permute(0, 2, 3, 1).numpy()
        return cls(images, [f"{i:04d}.png" for i in range(count)], broken)

    def __len__(self) -> int:
        return len(self.names)

    def id(self, position: int) -> str:
        return self.names[position]

    def read(self, position: int) -> np.ndarray:
        if self.names[position] in self.broken:
            raise Rejection("not an image, says the test")
        return self.images[position]

    def signature(self, position: int) -> str:
        return str(self.versions.get(self.names[position], 0))

    def without(self, *gone: str) -> Pictures:
        keep = [i for i, name in enumerate(self.names) if name not in gone]
        return Pictures(self.images[keep], [self.names[i] for i in keep], self.broken)


def image_stream(
    source: Source, task: Task, batch_size: int = 32, shuffle_seed: int | None = None
) -> Callable[[int, int], Stream]:
    def make(place: int, index: int) -> Stream:
        preprocess = task.vlm.preprocess if task.vlm else None
        return Stream(source, preprocess, batch_size, shuffle_seed, place, index, workers=0)

    return make


def run_images(
    out: Path, source: Source | None = None, method: Pact | None = None, **options: Any
) -> FolderRun:
    """A run over 200 small pictures, two of them broken."""
    task = options.pop("task", None) or image_task()
    source = source or Pictures.make(200, broken=("0003.png", "0150.png"))
    shuffle = options.pop("shuffle_seed", None)
    settings = {"warmup": 64, "input": source.fingerprint(), **options.pop("settings", {})}
    method = method or Pact(warmup=64, epochs=3, optimiser="adam", realign_batch_size=32)
    make = image_stream(source, task, shuffle_seed=shuffle)
    return run_to_folder(method, task, make, out, settings, **options)


def results(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in RESULTS}
