"""`ttgcd corrupt` writes the official layouts, the same ones however it is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ttgcd.cli import main
from ttgcd.corruptions import corrupt, files
from ttgcd.corruptions.files import Recipe, corrupt_array, corrupt_folder
from ttgcd.datasets import load_benchmark
from ttgcd.errors import InputError


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    folder = tmp_path / "clean"
    folder.mkdir()
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3)).astype(np.uint8)
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", np.arange(12) % 10)
    return folder


def test_five_severities_give_the_official_files(clean: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    arguments = ["corrupt", str(clean), str(target), "--kind", "fog,contrast"]
    assert main([*arguments, "--severity", "1..5", "--workers", "1"]) == 0
    images = np.load(clean / "images.npy")
    made = np.load(target / "fog.npy")
    assert made.shape == (60, 32, 32, 3)
    for row in (0, 11, 12, 59):  # severity-major
        assert np.array_equal(
            made[row], corrupt(images[row % 12], "fog", row // 12 + 1, (0, row % 12))
        )
    assert np.load(target / "labels.npy").tolist() == (np.arange(12) % 10).tolist() * 5
    source, _ = load_benchmark("cifar10-c", target, severity=4).open_stream("fog")
    assert np.array_equal(source.read(2), made[38])


def test_one_severity_gives_a_declared_layout(clean: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    corrupt_array(clean, target, ("fog",), Recipe((5,)))
    assert np.load(target / "fog.npy").shape == (12, 32, 32, 3)
    benchmark = load_benchmark("cifar10-c", target)
    source, labels = benchmark.open_stream("fog")
    assert len(source) == len(labels) == 12
    assert any("made here" in note for note in benchmark.notes)


def test_processes_and_blocks_do_not_change_a_byte(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("elastic_transform", "snow")
    corrupt_array(clean, tmp_path / "two", kinds, Recipe((3, 5), seed=9), workers=2)
    images = np.load(clean / "images.npy")
    for kind in kinds:
        here = [corrupt(x, kind, s, (9, i)) for s in (3, 5) for i, x in enumerate(images)]
        assert np.array_equal(np.load(tmp_path / "two" / f"{kind}.npy"), np.stack(here))


def test_interrupted_run_goes_on(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "made"

    def stop(done: int, total: int) -> None:
        if done > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corrupt_array(clean, target, ("fog", "snow"), Recipe((5,)), progress=stop)
    assert (target / "fog.npy").exists() and not (target / "snow.npy").exists()
    before = (target / "fog.npy").stat().st_mtime_ns
    assert corrupt_array(clean, target, ("fog", "snow"), Recipe((5,))) == ["fog"]
    assert (target / "fog.npy").stat().st_mtime_ns == before
    straight = tmp_path / "straight"
    corrupt_array(clean, straight, ("snow",), Recipe((5,)))
    assert (straight / "snow.npy").read_bytes() == (target / "snow.npy").read_bytes()
    assert not list(target.glob(".*"))


def test_two_recipes_do_not_mix(clean: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    corrupt_array(clean, target, ("fog",), Recipe((5,)))
    with pytest.raises(InputError, match="other settings"):
        corrupt_array(clean, target, ("snow",), Recipe((4,)))
    with pytest.raises(InputError, match="other settings"):
        corrupt_array(clean, target, ("snow",), Recipe((5,), seed=1))
    with pytest.raises(InputError, match="not empty"):
        corrupt_array(clean, clean, ("snow",), Recipe((5,)))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    rng = np.random.default_rng(1)
    for name, size in (("a/x.JPEG", (300, 260)), ("a/y.png", (64, 40)), ("b/z.jpg", (50, 90))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (*size, 3)).astype(np.uint8)).save(folder / name)
    return folder


def test_imagenet_layout(photos: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    assert corrupt_folder(photos, target, ("fog",), Recipe((5,)), "imagenet") == []
    found = sorted(
        p.relative_to(target).as_posix() for p in target.rglob("*.*") if p.parent != target
    )
    assert found == ["fog/5/a/x.JPEG", "fog/5/a/y.png.JPEG", "fog/5/b/z.jpg"]
    for name in found:
        with Image.open(target / name) as picture:
            assert picture.size == (224, 224) and picture.format == "JPEG"
            tables = picture.quantization
    from io import BytesIO

    reference = BytesIO()
    Image.new("RGB", (8, 8)).save(reference, "JPEG", quality=85)
    assert tables == Image.open(reference).quantization


def test_folder_layout_keeps_size_and_is_resumable(photos: Path, tmp_path: Path) -> None:
    target = tmp_path / "made"
    (photos / "b" / "bad.png").write_bytes(b"not a picture")
    arguments = ["corrupt", str(photos), str(target), "--kind", "contrast", "--workers", "1"]
    assert main(arguments) == 1  # one file could not be read
    path = target / "contrast" / "5" / "a" / "x.JPEG.png"
    made = np.asarray(Image.open(path))
    clean = np.asarray(Image.open(photos / "a" / "x.JPEG").convert("RGB"))
    assert np.array_equal(made, corrupt(clean, "contrast", 5, 0))
    before = path.stat().st_mtime_ns
    (photos / "b" / "bad.png").unlink()
    assert main(arguments) == 0
    assert path.stat().st_mtime_ns == before


def test_a_file_does_not_depend_on_the_others(photos: Path, tmp_path: Path) -> None:
    corrupt_folder(photos, tmp_path / "all", ("fog",), Recipe((5,)), "folder")
    (photos / "a" / "x.JPEG").unlink()
    corrupt_folder(photos, tmp_path / "fewer", ("fog",), Recipe((5,)), "folder")
    name = "fog/5/b/z.jpg.png"
    assert (tmp_path / "all" / name).read_bytes() == (tmp_path / "fewer" / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--kind", "rain"], "rain"),
        (["--kind", ","], "nothing"),
        (["--severity", "6"], "1 to 5"),
        (["--severity", "x"], "--severity"),
        (["--severity", "4..2"], "1 to 5"),
        (["--workers", "0"], "--workers"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_bad_options(clean: Path, tmp_path: Path, capsys, options: list[str], word: str) -> None:
    assert main(["corrupt", str(clean), str(tmp_path / "made"), *options]) == 2
    err = capsys.readouterr().err
    assert err.startswith("ttgcd: error:") and word in err and err.count("\n") == 1
    assert not (tmp_path / "made").exists()


def test_bad_sources(clean: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="no image"):
        corrupt_folder(empty, tmp_path / "made", ("fog",), Recipe((5,)))
    with pytest.raises(InputError, match=r"images\.npy"):
        corrupt_array(empty, tmp_path / "made", ("fog",), Recipe((5,)))
    np.save(clean / "labels.npy", np.arange(3))
    with pytest.raises(InputError, match="12 images"):
        corrupt_array(clean, tmp_path / "made", ("fog",), Recipe((5,)))


def test_rows_of_a_block_keep_their_numbers(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_ROWS", 5)
    row, made = files._corrupt_rows((str(clean / "images.npy"), 24, 5, "fog", 2, Recipe((2,))))
    images = np.load(clean / "images.npy")
    assert row == 29 and len(made) == 5
    assert np.array_equal(made[3], corrupt(images[8], "fog", 2, (0, 8)))
