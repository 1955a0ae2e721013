"""A source at an address is the source on disk: same ids, same bytes, same order."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ttgcd.errors import InputError
from ttgcd.streams import open_source, remote
from ttgcd.streams.base import Source
from ttgcd.streams.stream import Stream


@pytest.fixture
def store(tmp_path: Path) -> str:
    """An empty folder of fsspec's memory, and its address."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    return "memory://bucket"


def upload(folder: Path, address: str) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with fsspec.open(f"{address}/{path.relative_to(folder).as_posix()}", "wb") as file:
                file.write(path.read_bytes())


def same(here: Source, there: Source) -> None:
    ids = [here.id(position) for position in range(len(here))]
    assert [there.id(position) for position in range(len(there))] == ids
    for position in range(len(here)):
        assert np.array_equal(
            np.frombuffer(here.read(position), np.uint8),
            np.frombuffer(there.read(position), np.uint8),
        )


def test_a_folder_a_tar_a_parquet_file_and_arrays(
    folder: Path, make_tar, encoded, tmp_path: Path, store: str
) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept / "photos")
    (kept / "photos" / ".hidden.png").write_bytes(encoded[0])
    (kept / "photos" / "notes.md").write_text("not an image")
    members = [(f"{n}.png", data) for n, data in enumerate(encoded)]
    shutil.copy(make_tar(members), kept / "one.tar")
    pq.write_table(pa.table({"image": encoded}), kept / "rows.parquet", row_group_size=3)
    np.save(kept / "pixels.npy", np.arange(4 * 8 * 8 * 3, dtype=np.uint8).reshape(4, 8, 8, 3))
    np.save(kept / "rows.npy", np.random.default_rng(0).normal(size=(9, 4)))
    upload(kept, store)
    for name in ("photos", "one.tar", "rows.parquet", "pixels.npy", "rows.npy"):
        here, there = open_source(kept / name), open_source(f"{store}/{name}")
        same(here, there)
        assert there.notes() == here.notes()
        assert there.origin == f"{store}/{name}"
        same(here, pickle.loads(pickle.dumps(there)))  # as a worker gets it
    backwards = open_source(f"{store}/rows.npy").read_many([7, 2, 5])
    assert np.array_equal(backwards, open_source(kept / "rows.npy").read_many([7, 2, 5]))


def test_compressed_shards_patterns_and_folders_of_shards(
    make_tar, encoded, tmp_path: Path, store: str
) -> None:
    kept = tmp_path / "shards"
    kept.mkdir()
    for number in range(3):
        packed = make_tar([(f"{number}-{n}.png", d) for n, d in enumerate(encoded)], mode="w:gz")
        shutil.copy(packed, kept / f"part-{number}.tar.gz")
    upload(kept, f"{store}/shards")
    here = open_source(kept)
    for address in ("shards", "shards/part-*.tar.gz", "shards/part-{0..2}.tar.gz"):
        same(here, open_source(f"{store}/{address}"))
    several = open_source([f"{store}/shards/part-1.tar.gz", f"{store}/shards/part-0.tar.gz"])
    assert len(several) == 2 * len(encoded)


def test_a_shuffled_stream_of_an_address_gives_the_batches_of_the_folder(
    folder: Path, store: str, crop
) -> None:
    upload(folder, store)
    here, there = (
        list(Stream(open_source(spec), crop, 4, shuffle_seed=3)) for spec in (folder, store)
    )
    assert [batch.ids for batch in there] == [batch.ids for batch in here]
    assert all((a.images == b.images).all() for a, b in zip(here, there))


def test_lists_may_name_addresses(folder: Path, encoded, tmp_path: Path, store: str) -> None:
    upload(folder, store)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))[:2]
    (tmp_path / "list.txt").write_text("\n".join(f"{store}/{name}" for name in names))
    assert open_source(tmp_path / "list.txt").read(1) == (folder / names[1]).read_bytes()
    with fsspec.open(f"{store}/list.txt", "w") as file:
        file.write("\n".join(names))
    assert open_source(f"{store}/list.txt").read(1) == (folder / names[1]).read_bytes()
    with fsspec.open(f"{store}/list.txt", "w") as file:
        file.write("/etc/passwd\nfile:///etc/passwd")
    with pytest.raises(InputError, match="a file of this machine"):
        open_source(f"{store}/list.txt")


def test_file_addresses_are_paths(folder: Path) -> None:
    assert open_source(folder.as_uri()).fingerprint() == open_source(folder).fingerprint()
    with pytest.raises(InputError, match="another machine"):
        open_source("file://elsewhere/photos")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://nothing/here", "no such file or folder: 'memory://nothing/here'"),
        ("memory://nothing/here.tar", "no such file: memory://nothing/here.tar"),
        ("memory://nothing/*.tar", "no file matches 'memory://nothing/\\*.tar'"),
        ("gopher://old/photos", "gopher"),
        ("adl://account/photos", "adl:// needs the package adlfs: pip install adlfs"),
    ],
)
def test_what_cannot_be_opened_is_one_line(address: str, message: str, store: str) -> None:
    with pytest.raises(InputError, match=message):
        open_source(address)


def test_a_changed_file_has_another_fingerprint(store: str, encoded) -> None:
    for data in encoded[:2]:
        with fsspec.open(f"{store}/1.png", "wb") as file:
            file.write(data)
        with fsspec.open(f"{store}/2.png", "wb") as file:
            file.write(encoded[2])
        found = open_source(store).fingerprint()
        assert found == open_source(store).fingerprint()
    with fsspec.open(f"{store}/1.png", "wb") as file:
        file.write(encoded[0] + b"\0")
    assert open_source(store).fingerprint() != found


def test_a_file_that_is_gone_is_set_aside_and_a_network_that_fails_stops_the_run(
    folder: Path, store: str, crop, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(folder, store)
    monkeypatch.setattr(remote, "PAUSES", (0.0, 0.0))
    memory = type(fsspec.filesystem("memory"))
    source = open_source(store)
    stream = Stream(source, crop, 4)
    fsspec.filesystem("memory").rm(f"/bucket/{source.id(1)}")
    list(stream)
    assert [(r.id, r.reason) for r in stream.rejected] == [
        (source.id(1), f"no such file: {store}/{source.id(1)}")
    ]
    calls = []

    def flaky(self, path, start=None, end=None, **_):
        calls.append(path)
        if len(calls) % 3:
            raise ConnectionResetError("connection reset by peer")
        return memory_read(self, path, start, end)

    memory_read = memory.cat_file
    monkeypatch.setattr(memory, "cat_file", flaky)
    monkeypatch.setattr(remote, "AT_ONCE", 1)
    assert source.read(0) == memory_read(fsspec.filesystem("memory"), f"/bucket/{source.id(0)}")
    monkeypatch.setattr(memory, "cat_file", lambda *_, **__: 1 / 0)
    with pytest.raises(InputError, match="division by zero; a run that has begun goes on with"):
        list(stream)


def test_secrets_of_an_address_are_not_recorded() -> None:
    given = "https://me:word@host/a.tar?token=1"
    assert remote.without_secrets(given) == "https://host/a.tar"
    assert remote.without_secrets("s3://bucket/a b?c.png") == "s3://bucket/a b?c.png"


def test_a_path_with_colons_is_a_path(tmp_path: Path, encoded) -> None:
    (tmp_path / "photos::2024").mkdir()
    (tmp_path / "photos::2024" / "1.png").write_bytes(encoded[0])
    assert open_source(tmp_path / "photos::2024").read(0) == encoded[0]
    assert not remote.is_address("photos::2024/1.png")
    assert remote.is_address("simplecache::s3://bucket/a.tar")
