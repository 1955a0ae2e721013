"""Fashion-MNIST: 10,000 grey photographs of ten kinds of clothes and shoes, from Debian's package.

The one set of photographs beside CIFAR-10 that the package registries carry with a licence (MIT).
It has no corruption and needs none: nothing of its kind was seen by models trained on other images.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np

from ttgcd.datasets.benchmark import Benchmark, find_root
from ttgcd.datasets.cifar import RowBlock, read_labels
from ttgcd.datasets.classes import class_names, load_split
from ttgcd.errors import InputError
from ttgcd.storage.durable import write_atomic
from ttgcd.streams.arrays import Rows
from ttgcd.streams.base import Source

PACKAGE = "dataset-fashion-mnist"
INSTALLED = Path("/usr/share/datasets/fashion-mnist")  # where Debian's package puts it
IMAGES, LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
COUNT, SIDE = 10_000, 28
FOLDERS = ("fashion-mnist", "Fashion-MNIST")  # its usual names in a folder of data sets
# Hash over the pixels and labels, to notice files whose content is another.
_CONTENT = "9f1ec356a747bfe4ebab3cfb722d3694c9ca737e2570f6f90cf31d7b6fd689d4"


def prepare_fashion(target: Path, source: Path | None = None) -> None:
    """Write ``images.npy`` (grey as three equal colours) and ``labels.npy``."""
    folder = source or INSTALLED
    pixels, labels = _idx(folder / IMAGES, 16), _idx(folder / LABELS, 8)
    if hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest() != _CONTENT:
        raise InputError(f"{folder}: the images differ from those this package was tested with")
    images = np.repeat(pixels.reshape(COUNT, SIDE, SIDE, 1), 3, axis=3)
    target.mkdir(parents=True, exist_ok=True)
    write_atomic(target / "images.npy", lambda file: np.save(file, images))
    write_atomic(target / "labels.npy", lambda file: np.save(file, labels.astype(np.int64)))


def _idx(path: Path, header: int) -> np.ndarray:
    """The bytes behind the header of a file in the format of MNIST."""
    try:
        content = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise InputError(
            f"{path} is missing: install Debian's package {PACKAGE} (`apt-get install {PACKAGE}`), "
            "or give the folder with the four files of Fashion-MNIST with --from"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}): get it again") from None
    return np.frombuffer(content, np.uint8, offset=min(header, len(content)))


def load_fashion(name: str, root: Path | str | None) -> Benchmark:
    """One stream, ``test``: the shift is that of the photographs themselves."""
    folder = find_root(root, name, FOLDERS, "images.npy")
    classes = class_names("fashion-mnist")
    labels = read_labels(folder, len(classes))

    def open_test(stream: str) -> tuple[Source, np.ndarray]:
        path = folder / "images.npy"
        shape = Rows(str(path)).shape
        if shape != (len(labels), SIDE, SIDE, 3):
            raise InputError(
                f"{path} has shape {shape}, expected ({len(labels)}, {SIDE}, {SIDE}, 3): "
                "make it again with `ttgcd data prepare fashion-mnist`"
            )
        return RowBlock(path, 0, len(labels), stream), labels

    return Benchmark(name, classes, load_split("fashion-mnist"), ("test",), opener=open_test)
