"""The benchmarks: five published ones, IconShift, and labelled folders of the user's own."""

from __future__ import annotations

from ttgcd.datasets.benchmark import Benchmark
from ttgcd.datasets.classes import class_names, load_split, make_split
from ttgcd.datasets.registry import BENCHMARKS, load_benchmark

__all__ = ["BENCHMARKS", "Benchmark", "class_names", "load_benchmark", "load_split", "make_split"]
