"""Small pictures and a preprocessing that only crops, so that pixels can be compared exactly."""

from __future__ import annotations

import io
import itertools
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image


class Crop:
    """The preprocessing contract with the least work: the top left corner."""

    size = 6

    def __call__(self, images: np.ndarray) -> torch.Tensor:
        corner = images[..., : self.size, : self.size, :]
        return torch.from_numpy(np.ascontiguousarray(np.moveaxis(corner, -1, -3)))


@pytest.fixture
def crop() -> Crop:
    return Crop()


@pytest.fixture(scope="session")
def pictures() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (37, 8, 9, 3), dtype=np.uint8)


@pytest.fixture(scope="session")
def encoded(pictures: np.ndarray) -> list[bytes]:
    return [as_png(picture) for picture in pictures]


def as_png(picture: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path: Path, encoded: list[bytes]) -> Path:
    root = tmp_path / "pictures"
    for number, data in enumerate(encoded):
        place = root / f"part{number // 10}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:03d}.png").write_bytes(data)
    return root


def write_tar(path: Path, members: list[tuple[str, bytes]], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def make_tar(tmp_path: Path):
    counter = itertools.count()

    def make(members: list[tuple[str, bytes]], name: str = "", mode: str = "w") -> Path:
        return write_tar(tmp_path / (name or f"shard{next(counter)}.tar"), members, mode)

    return make
