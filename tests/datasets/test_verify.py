"""`data verify` finds each fault and says where to get the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.datasets import tiny
from ttgcd.cli import main
from ttgcd.corruptions import ALL_KINDS, KINDS
from ttgcd.datasets import verify as module
from ttgcd.datasets.verify import verify
from ttgcd.errors import InputError


@pytest.fixture
def small_cifar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A complete copy, but for twenty images a severity instead of ten thousand."""
    monkeypatch.setattr(module, "OFFICIAL_IMAGES", 20)
    return tiny.cifar_c(tmp_path, ALL_KINDS)


def problems(name: str, root: Path, **options: bool) -> str:
    return "\n".join(verify(name, root, **options).problems)


def test_complete_copy_is_complete(small_cifar: Path, capsys: pytest.CaptureFixture) -> None:
    assert problems("cifar10-c", small_cifar) == ""
    assert main(["data", "verify", "cifar10-c", str(small_cifar)]) == 0
    assert "complete" in capsys.readouterr().out


def test_official_counts_are_expected(tmp_path: Path) -> None:
    tiny.cifar_c(tmp_path, KINDS)
    found = problems("cifar10-c", tmp_path)
    assert "labels.npy: 100 rows, expected 50000" in found
    assert "fog.npy: 100 rows, expected 50000" in found


def test_each_fault_is_named(small_cifar: Path, capsys: pytest.CaptureFixture) -> None:
    (small_cifar / "fog.npy").unlink()
    content = (small_cifar / "snow.npy").read_bytes()
    (small_cifar / "snow.npy").write_bytes(content[:-100])
    np.save(small_cifar / "frost.npy", np.zeros((99, 32, 32, 3), np.uint8))
    np.save(small_cifar / "contrast.npy", np.zeros((100, 32, 32, 3), np.float32))
    found = problems("cifar10-c", small_cifar)
    assert "fog.npy: missing" in found
    assert "snow.npy: cut short" in found
    assert "frost.npy: 99 rows, expected 100" in found
    assert "contrast.npy: float32" in found
    assert len(found.splitlines()) == 4
    assert main(["data", "verify", "cifar10-c", str(small_cifar)]) == 1
    out = capsys.readouterr().out
    assert "4 problems" in out and "zenodo.org/records/2535967" in out


def test_label_faults(small_cifar: Path) -> None:
    np.save(small_cifar / "labels.npy", np.full(100, 10))
    assert "outside the 10" in problems("cifar10-c", small_cifar)
    np.save(small_cifar / "labels.npy", np.zeros(100, int))
    assert "no sample of class 1" in problems("cifar10-c", small_cifar)
    np.save(small_cifar / "labels.npy", np.tile(np.arange(16) % 10, 5))
    assert "labels.npy: 80 rows, expected 100" in problems("cifar10-c", small_cifar)
    (small_cifar / "labels.npy").unlink()
    assert "labels.npy is missing" in problems("cifar10-c", small_cifar)


def test_held_out_kinds_are_only_a_note(small_cifar: Path) -> None:
    (small_cifar / "spatter.npy").unlink()
    findings = verify("cifar10-c", small_cifar)
    assert not findings.problems and any("spatter" in note for note in findings.notes)


def test_imagenet_faults(tmp_path: Path) -> None:
    tiny.imagenet_c(tmp_path, ("fog",))
    broken = tmp_path / "fog" / "5" / "n01440764" / "ILSVRC2012_val_00000000.JPEG"
    broken.write_bytes(b"")
    found = problems("imagenet-c", tmp_path)
    assert "snow/5: missing" in found
    assert "1000 of 1000 classes do not have 50 images" in found
    assert "1 files empty or damaged, first n01440764/" in found


def test_cub_faults(tmp_path: Path) -> None:
    tiny.cub_c(tmp_path, ("fog",))
    found = problems("cub-c", tmp_path)
    assert "fog/5: 200 test images, expected 5794" in found
    assert "snow/5: missing" in found


def test_domainnet_faults(tmp_path: Path) -> None:
    tiny.domainnet(tmp_path, domains=("real",))
    (tmp_path / "real" / "zebra" / "real_343_test.jpg").unlink(missing_ok=True)
    gone = next((tmp_path / "real" / "The_Eiffel_Tower").glob("*_test.jpg"))
    gone.unlink()
    found = problems("domainnet", tmp_path)
    assert "sketch: missing" in found
    assert "real_train.txt: 345 lines, expected 120906" in found
    assert "listed files are missing" in found and "images, expected 172947" in found


def test_deep_check_decodes(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        tiny.picture(tmp_path / name / "1.png", 9, size=64)
    assert problems("folder", tmp_path, deep=True) == ""
    path = tmp_path / "cat" / "1.png"
    path.write_bytes(path.read_bytes()[:-40])
    assert problems("folder", tmp_path) == ""
    assert "cat/1.png" in problems("folder", tmp_path, deep=True)


def test_wrong_names_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(InputError, match="unknown dataset"):
        verify("mnist", tmp_path)
    assert main(["data", "verify", "mnist", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("ttgcd: error: unknown dataset 'mnist'")
    assert "is not a folder" in problems("cifar10-c", tmp_path / "absent")
    assert "no cub-c" in problems("cub-c", tmp_path)
    assert "images.npy: missing" in problems("cifar10", tmp_path)
