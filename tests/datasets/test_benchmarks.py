"""Every benchmark reads a tiny copy in its official layout, with the right labels."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.datasets import tiny
from ttgcd.corruptions import HELD_OUT, KINDS
from ttgcd.datasets import BENCHMARKS, Benchmark, load_benchmark
from ttgcd.datasets.classes import folder_names
from ttgcd.errors import InputError


def true_names(benchmark: Benchmark, categories: np.ndarray) -> list[str]:
    return [(benchmark.known + benchmark.novel)[c] for c in categories]


def red(content: bytes | np.ndarray) -> int:
    """The value that the tiny copies hide in an image: the class number."""
    assert isinstance(content, bytes)
    return int(np.asarray(Image.open(io.BytesIO(content)))[..., 0].mean().round())


@pytest.mark.parametrize(("name", "n_classes"), [("cifar10-c", 10), ("cifar100-c", 100)])
def test_cifar_reads_the_rows_of_its_severity(tmp_path: Path, name: str, n_classes: int) -> None:
    official = {"cifar10-c": "CIFAR-10-C", "cifar100-c": "CIFAR-100-C"}[name]
    tiny.cifar_c(tmp_path / official, ("fog", "spatter"), images=20, n_classes=n_classes)
    benchmark = load_benchmark(name, tmp_path)
    assert benchmark.streams == KINDS and benchmark.held_out == HELD_OUT
    assert len(benchmark.known) == n_classes // 2 and len(benchmark.classes) == n_classes
    for stream in ("fog", "spatter"):
        source, labels = benchmark.open_stream(stream)
        assert [int(source.read(i)[0, 0, 0]) for i in (0, 19)] == [80, 99]
        assert source.read_many([3, 5])[:, 0, 0, 0].tolist() == [83, 85]
        assert true_names(benchmark, labels) == [
            benchmark.classes[i % n_classes] for i in range(20)
        ]
        assert len({source.id(i) for i in range(20)}) == 20
    source, _ = load_benchmark(name, tmp_path / official, severity=2).open_stream("fog")
    assert int(source.read(0)[0, 0, 0]) == 20
    assert any("20 images" in note for note in benchmark.notes)


def test_another_split_seed_draws_other_known_classes_and_is_said(tmp_path: Path) -> None:
    tiny.cifar_c(tmp_path / "CIFAR-10-C", ("fog",), images=20, n_classes=10)
    stored = load_benchmark("cifar10-c", tmp_path)
    assert load_benchmark("cifar10-c", tmp_path, split_seed=0).known == stored.known
    other = load_benchmark("cifar10-c", tmp_path, split_seed=1)
    assert set(other.known) != set(stored.known) and set(other.classes) == set(stored.classes)
    assert "seed 1, not the stored split" in other.notes[-1]
    _, labels = other.open_stream("fog")
    assert true_names(other, labels) == [other.classes[i % 10] for i in range(20)]
    for wrong in (-1, "one", 1.5):
        with pytest.raises(InputError, match="split_seed"):
            load_benchmark("cifar10-c", tmp_path, split_seed=wrong)


def test_cifar_reduced_layout_says_what_it_holds(tmp_path: Path) -> None:
    images = np.arange(12, dtype=np.uint8)[:, None, None, None] * np.ones((32, 32, 3), np.uint8)
    np.save(tmp_path / "fog.npy", images)
    np.save(tmp_path / "labels.npy", np.tile(np.arange(6), 2))
    (tmp_path / "meta.json").write_text(json.dumps({"severities": [3, 5], "images": 6}))
    source, _ = load_benchmark("cifar10-c", tmp_path).open_stream("fog")
    assert len(source) == 6 and int(source.read(0)[0, 0, 0]) == 6
    with pytest.raises(InputError, match="not 4"):
        load_benchmark("cifar10-c", tmp_path, severity=4)
    (tmp_path / "meta.json").write_text('{"severities": [3')
    with pytest.raises(InputError, match="damaged"):
        load_benchmark("cifar10-c", tmp_path)


def test_fingerprint_tells_streams_apart(tmp_path: Path) -> None:
    tiny.cifar_c(tmp_path, ("fog",))
    prints = {
        load_benchmark("cifar10-c", tmp_path, severity=s).open_stream("fog")[0].fingerprint()
        for s in (1, 5)
    }
    assert len(prints) == 2


def test_imagenet_c_in_wordnet_order(tmp_path: Path) -> None:
    tiny.imagenet_c(tmp_path, ("fog",), per_class=1)
    benchmark = load_benchmark("imagenet-c", tmp_path)
    source, labels = benchmark.open_stream("fog")
    assert len(source) == 1000 and len(benchmark.known) == 500
    assert true_names(benchmark, labels) == list(benchmark.classes)
    assert source.id(0) == "fog/5/n01440764/ILSVRC2012_val_00000000.JPEG"
    assert abs(red(source.read(200)) - 200) <= 2
    assert any("missile" in note for note in benchmark.notes)
    distinct = load_benchmark("imagenet-c", tmp_path, distinct_names=True)
    assert len(set(distinct.classes)) == 1000 and not distinct.notes


def test_imagenet_c_subset_is_five_a_class_by_hash(tmp_path: Path) -> None:
    folder = tmp_path / "fog" / "5"
    wnids = folder_names("imagenet_wnids")[:2]
    names = [f"ILSVRC2012_val_{i:08d}.JPEG" for i in range(12)]
    for wnid in wnids:
        for name in names:
            tiny.picture(folder / wnid / name, 0)
    source, labels = load_benchmark("imagenet-c", tmp_path, subset=5000).open_stream("fog")
    chosen = sorted(sorted(names, key=lambda n: hashlib.sha256(n.encode()).hexdigest())[:5])
    assert [source.id(i) for i in range(5)] == [f"fog/5/{wnids[0]}/{name}" for name in chosen]
    assert len(source) == len(labels) == 10
    with pytest.raises(InputError, match="subset"):
        load_benchmark("imagenet-c", tmp_path, subset=100)


def test_cub_c_keeps_the_test_images(tmp_path: Path) -> None:
    tiny.cub_c(tmp_path / "CUB-C", ("fog",))
    benchmark = load_benchmark("cub-c", tmp_path)
    source, labels = benchmark.open_stream("fog")
    assert len(benchmark.streams) == 7 and len(source) == 200
    assert all(source.id(i).endswith("_1.jpg") for i in range(200))
    assert true_names(benchmark, labels) == list(benchmark.classes)
    (tmp_path / "CUB-C" / "images.txt").unlink()
    everything = load_benchmark("cub-c", tmp_path)
    assert len(everything.open_stream("fog")[0]) == 400
    assert any("every image" in note for note in everything.notes)


@pytest.mark.parametrize("lists", [True, False])
def test_domainnet_uses_the_official_order(tmp_path: Path, lists: bool) -> None:
    tiny.domainnet(tmp_path, lists, domains=("sketch", "real"))
    benchmark = load_benchmark("domainnet", tmp_path)
    source, labels = benchmark.open_stream("sketch")
    assert len(source) == 690 and len(benchmark.known) == 172 and len(benchmark.novel) == 173
    names = true_names(benchmark, labels)
    for i in range(0, 690, 7):
        assert source.id(i).split("/")[1].replace("_", " ") == names[i]
        assert abs(red(source.read(i)) - benchmark.classes.index(names[i]) % 256) <= 2
    assert "The Eiffel Tower" in names


def test_domainnet_list_in_another_order_is_refused(tmp_path: Path) -> None:
    tiny.domainnet(tmp_path, domains=("real",))
    path = tmp_path / "real_test.txt"
    lines = path.read_text().splitlines()
    lines[4] = lines[4].rsplit(" ", 1)[0] + " 7"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="line 5"):
        load_benchmark("domainnet", tmp_path).open_stream("real")


def test_own_folder(tmp_path: Path) -> None:
    for number, name in enumerate(("cat", "dog", "sea_lion")):
        for copy in range(number + 1):
            tiny.picture(tmp_path / name / f"{copy}.png", number)
    benchmark = load_benchmark("folder", tmp_path, known=("sea lion", "cat"))
    _, labels = benchmark.open_stream("images")
    assert (benchmark.known, benchmark.novel) == (("sea lion", "cat"), ("dog",))
    assert labels.tolist() == [1, 2, 2, 0, 0, 0]
    assert len(load_benchmark("folder", tmp_path).known) == 1


@pytest.mark.parametrize("name", [n for n in BENCHMARKS if n != "iconshift"])
def test_wrong_folder(tmp_path: Path, name: str) -> None:
    for root in (tmp_path, tmp_path / "absent", None):
        with pytest.raises(InputError):
            load_benchmark(name, root)


def test_missing_and_unknown_streams(tmp_path: Path) -> None:
    tiny.cifar_c(tmp_path, ("fog",))
    benchmark = load_benchmark("cifar10-c", tmp_path)
    with pytest.raises(InputError, match=r"snow\.npy is missing"):
        benchmark.open_stream("snow")
    with pytest.raises(InputError, match="no stream 'rain'"):
        benchmark.open_stream("rain")
    with pytest.raises(InputError, match="unknown benchmark"):
        load_benchmark("mnist", tmp_path)
    with pytest.raises(InputError, match="no option 'subset'"):
        load_benchmark("cifar10-c", tmp_path, subset=5000)


def test_cifar_faults(tmp_path: Path) -> None:
    tiny.cifar_c(tmp_path, ("fog", "snow", "frost"))
    (tmp_path / "fog.npy").write_bytes((tmp_path / "fog.npy").read_bytes()[:-1])
    np.save(tmp_path / "snow.npy", np.zeros((99, 32, 32, 3), np.uint8))
    np.save(tmp_path / "frost.npy", np.zeros((100, 3, 32, 32), np.uint8))
    benchmark = load_benchmark("cifar10-c", tmp_path)
    for kind in ("fog", "snow", "frost"):
        with pytest.raises(InputError, match=kind):
            benchmark.open_stream(kind)
    np.save(tmp_path / "labels.npy", np.tile(np.arange(20), 5))
    with pytest.raises(InputError, match="outside the 10"):
        load_benchmark("cifar10-c", tmp_path)
    for rows in (80, 84):  # four severities, or a file that was cut
        np.save(tmp_path / "labels.npy", np.tile(np.arange(20) % 10, 5)[:rows])
        with pytest.raises(InputError, match="equal blocks"):
            load_benchmark("cifar10-c", tmp_path)


def test_strange_class_folder(tmp_path: Path) -> None:
    tiny.cub_c(tmp_path, ("fog",))
    (tmp_path / "fog" / "5" / "999.Dodo").mkdir()
    with pytest.raises(InputError, match="Dodo"):
        load_benchmark("cub-c", tmp_path).open_stream("fog")
