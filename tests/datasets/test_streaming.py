"""A benchmark's stream goes through the shuffled, decoding stream with its labels in step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tests.datasets import tiny
from ttgcd.datasets import load_benchmark
from ttgcd.streams.stream import Stream


def keep(image: np.ndarray) -> torch.Tensor:
    """Stands in for a model's preprocessing; one image or a stack of them."""
    return torch.from_numpy(np.array(image)).movedim(-1, -3)


def test_rows_and_labels_stay_together(tmp_path: Path) -> None:
    tiny.cifar_c(tmp_path, ("fog",), images=20)
    benchmark = load_benchmark("cifar10-c", tmp_path)
    source, labels = benchmark.open_stream("fog")
    names = benchmark.known + benchmark.novel
    seen = []
    for batch in Stream(source, keep, batch_size=6, shuffle_seed=4):
        assert batch.images is not None
        for position, image in zip(batch.positions, batch.images):
            value = int(image[0, 0, 0])
            assert value == 80 + position
            assert names[labels[position]] == benchmark.classes[position % 10]
            seen.append(position)
    assert sorted(seen) == list(range(20)) != seen


def test_files_and_labels_stay_together(tmp_path: Path) -> None:
    tiny.cub_c(tmp_path, ("snow",))
    benchmark = load_benchmark("cub-c", tmp_path)
    source, labels = benchmark.open_stream("snow")
    names = benchmark.known + benchmark.novel
    count = 0
    for batch in Stream(source, keep, batch_size=64, shuffle_seed=0):
        assert batch.images is not None
        for position, image in zip(batch.positions, batch.images):
            number = benchmark.classes.index(names[labels[position]])
            assert abs(int(image[0].float().mean().round()) - number) <= 2
            count += 1
    assert count == 200
