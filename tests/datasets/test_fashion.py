"""Fashion-MNIST out of the files that Debian's package holds."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from ttgcd.cli import main
from ttgcd.datasets import fashion, load_benchmark
from ttgcd.errors import InputError


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The two files in MNIST's format: a header, then bytes; image i is filled with i mod 256."""
    pixels = np.repeat(np.arange(fashion.COUNT).astype(np.uint8), fashion.SIDE**2).tobytes()
    labels = (np.arange(fashion.COUNT) % 10).astype(np.uint8).tobytes()
    folder = tmp_path / "files"
    folder.mkdir()
    header = np.array([0x803, fashion.COUNT, fashion.SIDE, fashion.SIDE], ">i4").tobytes()
    (folder / fashion.IMAGES).write_bytes(gzip.compress(header + pixels, 1))
    header = np.array([0x801, fashion.COUNT], ">i4").tobytes()
    (folder / fashion.LABELS).write_bytes(gzip.compress(header + labels, 1))
    monkeypatch.setattr(fashion, "_CONTENT", hashlib.sha256(pixels + labels).hexdigest())
    return folder


def test_prepared_by_command_it_is_a_benchmark_of_one_stream(tmp_path: Path, files: Path) -> None:
    target = tmp_path / "data" / "fashion-mnist"
    assert main(["data", "prepare", "fashion-mnist", str(target), "--from", str(files)]) == 0
    assert main(["data", "verify", "fashion-mnist", str(tmp_path / "data")]) == 0
    benchmark = load_benchmark("fashion-mnist", tmp_path / "data")
    assert benchmark.streams == ("test",) and len(benchmark.known) == len(benchmark.novel) == 5
    source, ids = benchmark.open_stream("test")
    assert len(source) == fashion.COUNT
    assert source.read(77).shape == (28, 28, 3) and (source.read(77) == 77).all()
    names = (*benchmark.known, *benchmark.novel)
    assert [names[i] for i in ids[:3]] == ["T-shirt", "trousers", "pullover"]


def test_other_or_missing_files_are_refused(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fashion, "_CONTENT", "other")
    with pytest.raises(InputError, match="differ from those"):
        fashion.prepare_fashion(tmp_path / "out", files)
    (files / fashion.LABELS).write_bytes(b"no gzip")
    with pytest.raises(InputError, match="cannot be read"):
        fashion.prepare_fashion(tmp_path / "out", files)
    (files / fashion.IMAGES).unlink()
    with pytest.raises(InputError, match="apt-get install dataset-fashion-mnist"):
        fashion.prepare_fashion(tmp_path / "out", files)
    assert not (tmp_path / "out").exists()


def test_a_file_of_another_size_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.zeros((4, 32, 32, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.arange(4))
    with pytest.raises(InputError, match="make it again"):
        load_benchmark("fashion-mnist", tmp_path).open_stream("test")
    assert main(["data", "verify", "fashion-mnist", str(tmp_path)]) == 1
