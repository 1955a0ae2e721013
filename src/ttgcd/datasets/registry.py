"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ttgcd.datasets.benchmark import Benchmark
from ttgcd.datasets.cifar import load_cifar
from ttgcd.datasets.classes import make_split
from ttgcd.datasets.fashion import load_fashion
from ttgcd.datasets.folders import (
    load_cub_c,
    load_domainnet,
    load_image_folder,
    load_imagenet_c,
)
from ttgcd.datasets.icons import load_iconshift_benchmark
from ttgcd.errors import InputError

BENCHMARKS: dict[str, Callable[..., Benchmark]] = {
    "cifar10-c": load_cifar,
    "cifar100-c": load_cifar,
    "imagenet-c": load_imagenet_c,
    "cub-c": load_cub_c,
    "domainnet": load_domainnet,
    "fashion-mnist": load_fashion,
    "iconshift": load_iconshift_benchmark,
    "folder": load_image_folder,
}


def load_benchmark(name: str, root: Path | str | None = None, **options: Any) -> Benchmark:
    """A benchmark by name, from the folder that holds it (``iconshift`` needs none).

    Options: ``severity`` (corruption sets), ``subset`` and ``distinct_names`` (imagenet-c),
    ``known`` (folder), and ``split_seed``: another draw of the known classes than the stored one.
    """
    if name not in BENCHMARKS:
        raise InputError(f"unknown benchmark {name!r}: choose from {', '.join(BENCHMARKS)}")
    split_seed = None if name == "folder" else options.pop("split_seed", None)
    if split_seed is not None and not (isinstance(split_seed, int) and 0 <= split_seed < 2**32):
        raise InputError(f"split_seed is {split_seed!r}: it must be a whole number, 0 or more")
    try:
        benchmark = BENCHMARKS[name](name, root, **options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        option = str(error).rsplit("'", 2)[-2]
        raise InputError(f"benchmark {name} has no option {option!r}") from None
    if split_seed is None:
        return benchmark
    note = f"known classes drawn by seed {split_seed}, not the stored split"
    split = make_split(len(benchmark.classes), split_seed)
    return replace(benchmark, split=split, notes=(*benchmark.notes, note))
