"""IconShift as a benchmark: styles as they are, corruptions made on the way out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ttgcd.corruptions import KINDS, corrupt
from ttgcd.streams.datasets.icons import ImagesInMemory


def test_images_in_memory_are_corrupted_by_their_place() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 48, 48, 3)).astype(np.uint8)
    ids = [f"set/{i}" for i in range(5)]
    clean, foggy = ImagesInMemory(images, ids), ImagesInMemory(images, ids, "fog", 5)
    assert np.array_equal(clean.read(3), images[3])
    for position in (4, 0, 4):
        assert np.array_equal(foggy.read(position), corrupt(images[position], "fog", 5, position))
    assert [foggy.id(i) for i in range(5)] == ids
    assert clean.fingerprint() != foggy.fingerprint()


def test_benchmark_of_styles_and_corruptions() -> None:
    iconshift = pytest.importorskip("ttgcd.streams.iconshift")
    from ttgcd import data
    from ttgcd.streams.datasets import load_benchmark

    benchmark = load_benchmark("iconshift")
    domains = tuple(iconshift.iconshift_domains())
    assert benchmark.streams == domains + KINDS
    stored = json.loads(data.path("splits", "iconshift.json").read_text("utf-8"))
    assert (list(benchmark.known), list(benchmark.novel)) == (stored["known"], stored["novel"])
    sources = [benchmark.open_stream(domain) for domain in domains]
    everything, labels = benchmark.open_stream("contrast")
    assert len(everything) == sum(len(source) for source, _ in sources)
    assert np.array_equal(labels, np.concatenate([labels for _, labels in sources]))
    first, offset = sources[1][0], len(sources[0][0])
    clean = first.read(0)
    assert np.array_equal(everything.read(offset), corrupt(clean, "contrast", 5, offset))
