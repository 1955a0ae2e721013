"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ttgcd.datasets.benchmark import Benchmark
from ttgcd.datasets.cifar import load_cifar
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
    "iconshift": load_iconshift_benchmark,
    "folder": load_image_folder,
}


def load_benchmark(name: str, root: Path | str | None = None, **options: Any) -> Benchmark:
    """A benchmark by name, from the folder that holds it (``iconshift`` needs none).

    Options: ``severity`` (corruption sets), ``subset`` and ``distinct_names`` (imagenet-c),
    ``known`` and ``split_seed`` (folder).
    """
    if name not in BENCHMARKS:
        raise InputError(f"unknown benchmark {name!r}: choose from {', '.join(BENCHMARKS)}")
    try:
        return BENCHMARKS[name](name, root, **options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        option = str(error).rsplit("'", 2)[-2]
        raise InputError(f"benchmark {name} has no option {option!r}") from None
