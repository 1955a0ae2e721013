"""What the user gives is recognised, or refused with one line that says what to do."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ttgcd.errors import InputError
from ttgcd.streams import open_source
from ttgcd.streams.arrays import ArraySource, EmbeddingSource
from ttgcd.streams.folder import FolderSource
from ttgcd.streams.listing import ListSource
from ttgcd.streams.open import _braces
from ttgcd.streams.parquet import ParquetSource
from ttgcd.streams.tar import TarSource

from .conftest import as_png, write_tar


def test_kinds(folder: Path, make_tar, encoded, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    np.save(tmp_path / "i.npy", np.zeros((2, 4, 4, 3), np.uint8))
    np.save(tmp_path / "e.npy", np.ones((2, 4)))
    pq.write_table(pa.table({"image": encoded}), tmp_path / "p.parquet")
    (tmp_path / "l.txt").write_text("pictures/part0/000.png\n")
    kinds = {
        str(folder): FolderSource,
        tmp_path / "i.npy": ArraySource,
        tmp_path / "e.npy": EmbeddingSource,
        tmp_path / "p.parquet": ParquetSource,
        tmp_path / "l.txt": ListSource,
        folder / "part0" / "000.png": ListSource,
        str(folder / "part*" / "*.png"): ListSource,
        make_tar([("1.png", encoded[0])]): TarSource,
    }
    for spec, kind in kinds.items():
        source = open_source(spec)
        assert type(source) is kind
        assert open_source(source) is source


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", b"x", "numpy.save"),
        ("a.csv", b"x", "one a line"),
        ("a.zip", b"x", "unpack"),
        ("a.mp4", b"x", "give a folder"),
        ("a.txt", b"\n \n", "one image path a line"),
        ("a.txt", b"missing.png\n", "no readable image among 1; the first: missing.png"),
        ("a.png", b"x", "no readable image"),
        ("a.tar", b"x" * 2000, "no image member"),
        ("a.tar", b"", "no image member"),
        ("a.parquet", b"PAR1 no", "as parquet"),
        ("a.npy", b"x", "as an array"),
        ("a.npy", b"\x93NUMPY\x01\x00", "as an array"),
        ("a.npy", b"\x93NUMPY\x01\x00\x04\x00{'a'", "as an array"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        open_source(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4), np.uint8),
        np.zeros((3, 4, 4, 3), np.float32),
        np.zeros((3, 4), np.int64),
        np.zeros((0, 4), np.float32),
        np.zeros((2, 0, 4, 3), np.uint8),
        np.array(1.0),
        np.array([["a"]]),
    ],
)
def test_unusable_arrays(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    for spec in (array, tmp_path / "a.npy"):
        with pytest.raises(InputError, match=r"expected|empty"):
            open_source(spec)


def test_arrays_of_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="as an array"):
        open_source(tmp_path / "a.npy")


def test_truncated_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((100, 8)))
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:-50])
    with pytest.raises(InputError, match="as an array"):
        open_source(tmp_path / "a.npy")


@pytest.mark.parametrize("spec", ["nothing/here", "no*.tar", "bad\0name"])
def test_what_is_not_there(spec: str) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        open_source(spec)


def test_devices() -> None:
    with pytest.raises(InputError, match="neither"):
        open_source("/dev/null")


def test_folder_without_images(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no image in"):
        open_source(tmp_path)
    (tmp_path / "a.md").write_text("x")
    with pytest.raises(InputError, match=r"1 other file: 1 \."):
        open_source(tmp_path)
    (tmp_path / "a.jpg").write_text("x")
    with pytest.raises(InputError, match=r"no readable image among 1; the first: a\.jpg: not an"):
        open_source(tmp_path)


def test_empty_stdin_and_sequence(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    with pytest.raises(InputError, match="standard input"):
        open_source("-")
    with pytest.raises(InputError, match="empty"):
        open_source([])


def test_braces() -> None:
    assert _braces("a-{08..10}.tar") == ["a-08.tar", "a-09.tar", "a-10.tar"]
    assert _braces("{a,b}/{0..1}") == ["a/0", "a/1", "b/0", "b/1"]
    with pytest.raises(InputError, match="more than"):
        _braces("{0..999999999}")


def test_missing_shard_is_an_error(tmp_path: Path, make_tar, encoded) -> None:
    make_tar([("1.png", encoded[0])], "s-0.tar")
    with pytest.raises(InputError, match=r"s-1\.tar"):
        open_source(str(tmp_path / "s-{0..1}.tar"))


def test_mixed_kinds_are_an_error(tmp_path: Path, make_tar, encoded) -> None:
    make_tar([("1.png", encoded[0])], "x.tar")
    (tmp_path / "x.png").write_bytes(encoded[0])
    with pytest.raises(InputError, match="different kinds"):
        open_source(str(tmp_path / "x.*"))


@pytest.fixture(scope="module")
def containers(tmp_path_factory) -> dict[str, bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = tmp_path_factory.mktemp("containers")
    images = [as_png(np.full((4, 4, 3), number, np.uint8)) for number in range(4)]
    members = [(f"{'ä' * 60 * number}{number}.png", data) for number, data in enumerate(images)]
    write_tar(root / "a.tar", members)
    write_tar(root / "a.tar.gz", members, "w:gz")
    table = pa.table({"id": ["a", "b", "c", "d"], "image": images})
    pq.write_table(table, root / "a.parquet", row_group_size=2)
    np.save(root / "a.npy", np.ones((9, 4), np.float32))
    return {path.name: path.read_bytes() for path in root.iterdir()}


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["a.tar", "a.tar.gz", "a.parquet", "a.npy"]),
    edits=st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=6),
    cut=st.none() | st.integers(0, 20_000),
)
def test_mutated_containers_are_read_or_refused(
    containers: dict[str, bytes],
    tmp_path: Path,
    name: str,
    edits: list[tuple[int, int]],
    cut: int | None,
) -> None:
    data = bytearray(containers[name])
    if cut is not None:
        data = data[: cut % (len(data) + 1)]
    for place, value in edits:
        if data:
            data[place % len(data)] = value
    (tmp_path / name).write_bytes(data)
    try:
        source = open_source(tmp_path / name)
    except InputError as error:
        assert "\n" not in str(error)
        return
    for position in range(len(source)):
        source.id(position).encode()
        with suppress(OSError, ValueError):  # what the stream takes as a reason to set aside
            source.read(position)
    assert source.fingerprint()
    source.close()


def test_looking_at_inputs_does_not_load_torch(folder: Path) -> None:
    code = "import sys; from ttgcd.streams import open_source, read_names; read_names('a,b')"
    code += "; open_source(sys.argv[1]); print('torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
