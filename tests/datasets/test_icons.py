"""IconShift as a benchmark: styles as they are, corruptions made on the way out."""

from __future__ import annotations

import json

import numpy as np

from ttgcd import data
from ttgcd.corruptions import KINDS, corrupt
from ttgcd.datasets import load_benchmark
from ttgcd.datasets.iconshift import iconshift_domains, load_iconshift
from ttgcd.streams.decode import decode


def test_streams_and_split() -> None:
    benchmark = load_benchmark("iconshift")
    assert benchmark.streams == tuple(iconshift_domains())
    assert benchmark.further == KINDS
    stored = json.loads(data.path("splits", "iconshift.json").read_text("utf-8"))
    assert (list(benchmark.known), list(benchmark.novel)) == (stored["known"], stored["novel"])


def test_a_style_has_its_own_labels() -> None:
    benchmark = load_benchmark("iconshift")
    domain = iconshift_domains()[0]
    source, labels = benchmark.open_stream(domain)
    names = benchmark.known + benchmark.novel
    assert [names[i] for i in labels] == load_iconshift(domain)[1]
    assert len({source.id(i) for i in range(len(source))}) == len(source)


def test_corrupted_by_place_over_all_styles() -> None:
    benchmark = load_benchmark("iconshift", severity=3)
    everything, labels = benchmark.open_stream("fog")
    clean, names = load_iconshift("all")
    assert len(everything) == len(clean) == len(labels) == len(names)
    for position in (9, 0, len(clean) - 1, 9):
        expected = corrupt(decode(clean.read(position)), "fog", 3, position)
        assert np.array_equal(everything.read(position), expected)
        assert everything.id(position) == clean.id(position)
    assert everything.signature(0) != benchmark.open_stream("snow")[0].signature(0)
