"""Every kind of source gives the same pictures; each keeps its own rules."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.streams import Source, Stream, open_source
from ttgcd.streams import spool as spool_module
from ttgcd.streams.arrays import Rows, open_array
from ttgcd.streams.base import Rejection
from ttgcd.streams.files import read_file, unique_ids
from ttgcd.streams.folder import FolderSource

from .conftest import as_png, write_tar


def as_folder(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    (root / "f" / "deep").mkdir(parents=True)
    for number, data in enumerate(encoded):
        place = root / "f" / "deep" if number < 20 else root / "f"
        (place / f"{number:03d}.PNG").write_bytes(data)
    return root / "f"


def as_list(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    for number, data in enumerate(encoded):
        (root / f"{number}.bin").write_bytes(data)
    lines = "".join(f"{number}.bin\r\n\r\n" for number in range(len(encoded)))
    (root / "list.txt").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    return root / "list.txt"


def as_sequence(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    as_list(root, encoded, pictures)
    return [root / f"{number}.bin" for number in range(len(encoded))]


def members(encoded: list[bytes]) -> list[tuple[str, bytes]]:
    pairs = [(f"{n:03d}.png", f"{n:03d}.json") for n in range(len(encoded))]
    return [
        item for pair, data in zip(pairs, encoded) for item in ((pair[0], data), (pair[1], b"{}"))
    ]


def as_tar(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    return write_tar(root / "all.tar", members(encoded))


def as_packed_tar(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    return write_tar(root / "all.tar.gz", members(encoded), "w:gz")


def as_shards(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    for number, start in enumerate(range(0, len(encoded), 10)):
        part = members(encoded)[2 * start : 2 * start + 20]
        write_tar(root / f"part-{number:02d}.tar", part)
    return str(root / "part-{00..03}.tar")


def as_shard_folder(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    as_shards(root, encoded, pictures)
    return str(root)


def as_shard_glob(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    as_shards(root, encoded, pictures)
    return str(root / "part-*.tar")


def as_parquet(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    structs = [{"bytes": data, "path": None} for data in encoded]
    table = pa.table({"label": list(range(len(encoded))), "image": structs})
    pq.write_table(table, root / "train.parquet", row_group_size=7)
    return root / "train.parquet"


def as_parquet_files(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    for number, start in enumerate(range(0, len(encoded), 15)):
        table = pa.table({"jpg": encoded[start : start + 15]})
        pq.write_table(table, root / f"{number}.parquet", row_group_size=4)
    return root


def as_npy(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    np.save(root / "images.npy", pictures)
    return root / "images.npy"


def as_channels_first(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    np.save(root / "images.npy", pictures.transpose(0, 3, 1, 2).copy())
    return root / "images.npy"


def as_columns_first(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    np.save(root / "images.npy", np.asfortranarray(pictures))
    return root / "images.npy"


def as_memory(root: Path, encoded: list[bytes], pictures: np.ndarray) -> object:
    return pictures


KINDS: list[Callable[[Path, list[bytes], np.ndarray], object]] = [
    as_folder, as_list, as_sequence, as_tar, as_packed_tar, as_shards, as_shard_folder,
    as_shard_glob, as_parquet, as_parquet_files, as_npy, as_channels_first, as_columns_first,
    as_memory,
]  # fmt: skip


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", [None, 4])
def test_every_kind_gives_the_same_batches(
    make, seed: int | None, tmp_path: Path, encoded: list[bytes], pictures: np.ndarray, crop
) -> None:
    spec = make(tmp_path, encoded, pictures)
    source = open_source(spec)
    if make is as_folder:  # capitals first: "000.PNG" lies in "deep/", behind "020.PNG"
        assert [source.id(n) for n in (0, 16, 17)] == ["020.PNG", "036.PNG", "deep/000.PNG"]
        pictures = np.concatenate([pictures[20:], pictures[:20]])
    batches = list(Stream(source, crop, 10, seed))
    order = np.arange(37) if seed is None else np.random.RandomState(seed).permutation(37)
    expected = np.moveaxis(pictures[order][:, :6, :6], 3, 1)
    assert [len(batch) for batch in batches] == [10, 10, 10, 7]
    np.testing.assert_array_equal(torch.cat([batch.images for batch in batches]), expected)
    assert [p for batch in batches for p in batch.positions] == order.tolist()
    assert len({name for batch in batches for name in batch.ids}) == 37
    again = open_source(spec)
    assert again.fingerprint() == source.fingerprint()
    assert [again.id(n) for n in range(37)] == [source.id(n) for n in range(37)]
    source.close()
    again.close()


def reasons(source: Source, crop) -> dict[str, str]:
    stream = Stream(source, crop)
    list(stream)
    return {one.id: one.reason for one in stream.rejected}


# --- folders ---------------------------------------------------------------------------------


def test_broken_files_are_set_aside_with_the_reason(folder: Path, crop, monkeypatch) -> None:
    (folder / "empty.jpg").touch()
    (folder / "text.jpg").write_text("no picture")
    (folder / "half.png").write_bytes(as_png(np.ones((90, 90, 3), np.uint8))[:60])
    (folder / "gone.png").write_bytes(b"x")
    (folder / "dir.png").mkdir()
    (folder / "secret.png").write_bytes(b"x")
    (folder / "big.png").write_bytes(b"x" * 5000)
    os.mkfifo(folder / "pipe.png")
    source = FolderSource(str(folder), max_bytes=4000)
    (folder / "gone.png").unlink()
    real_open = os.open

    def guarded(path, *args, **kwargs):
        if str(path).endswith("secret.png"):
            raise PermissionError(13, "Permission denied", path)
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", guarded)
    found = reasons(source, crop)
    assert found.pop("half.png").startswith("damaged")
    assert found == {
        "empty.jpg": "empty file",
        "text.jpg": "not an image of a supported format",
        "gone.png": "file not found",
        "secret.png": "permission denied",
        "big.png": "file too large: 5000 bytes (limit 4000)",
        "pipe.png": "not a regular file",
    }


def test_links_that_leave_the_folder(folder: Path, tmp_path: Path, crop, encoded) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private.png").write_bytes(encoded[0])
    (folder / "out.png").symlink_to(outside / "private.png")
    (folder / "relative.png").symlink_to("../outside/private.png")
    (folder / "dangling.png").symlink_to("nowhere.png")
    (folder / "in.png").symlink_to("part0/000.png")
    (folder / "linked").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (tmp_path / "pictures2").mkdir()  # a name that only begins like the folder
    (tmp_path / "pictures2" / "x.png").write_bytes(encoded[0])
    (folder / "near.png").symlink_to(tmp_path / "pictures2" / "x.png")
    source = open_source(folder)
    assert len(source) == 37 + 5
    assert "2 links to folders were not followed" in source.notes()
    away = "symbolic link to a place outside the folder"
    found = reasons(source, crop)
    assert found == {
        "out.png": away,
        "relative.png": away,
        "near.png": away,
        "dangling.png": "file not found",
    }


def test_a_folder_given_through_a_link_is_read(folder: Path, tmp_path: Path, crop) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert reasons(open_source(tmp_path / "link"), crop) == {}


def test_other_and_hidden_files_are_left_out_and_counted(folder: Path, encoded) -> None:
    (folder / "notes.md").write_text("x")
    (folder / "._001.png").write_bytes(b"mac")
    (folder / ".thumbnails").mkdir()
    (folder / ".thumbnails" / "t.png").write_bytes(encoded[0])
    source = open_source(folder)
    assert len(source) == 37
    assert source.notes() == (
        "1 file that is no image was left out (1 .md)",
        "1 hidden file was left out",
    )


def test_order_does_not_depend_on_the_file_system(tmp_path: Path, encoded) -> None:
    names = ["b.png", "a/z.png", "a.png", "B.png", "ä.png", "a-1.png", "10.png", "9.png"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(encoded[0])
    source = open_source(tmp_path)
    assert [source.id(n) for n in range(len(source))] == sorted(names)
    assert sorted(names)[:3] == ["10.png", "9.png", "B.png"]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode elsewhere")
def test_undecodable_names_become_valid_ids(tmp_path: Path, encoded, crop) -> None:
    (tmp_path / "ok.png").write_bytes(encoded[0])
    with open(os.fsencode(tmp_path) + b"/bad\xff.png", "wb") as file:
        file.write(encoded[0])
    source = open_source(tmp_path)
    assert source.id(0) == "bad\\xff.png"
    source.fingerprint().encode()
    assert reasons(source, crop) == {}


def test_signatures_show_what_changed(folder: Path, encoded) -> None:
    before = open_source(folder)
    changed = folder / "part0" / "003.png"
    changed.write_bytes(encoded[4] + b"longer")
    (folder / "part0" / "005.png").unlink()
    (folder / "new.png").write_bytes(encoded[0])
    after = open_source(folder)
    assert before.fingerprint() != after.fingerprint()
    old = {before.id(n): before.signature(n) for n in range(len(before))}
    new = {after.id(n): after.signature(n) for n in range(len(after))}
    assert {name for name in old.keys() & new.keys() if old[name] != new[name]} == {"part0/003.png"}
    assert old.keys() - new.keys() == {"part0/005.png"}
    assert new.keys() - old.keys() == {"new.png"}


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"12345")
    real = os.fstat

    def grow(handle: int) -> os.stat_result:
        status = real(handle)
        path.write_bytes(b"1234567")
        return status

    monkeypatch.setattr(os, "fstat", grow)
    with pytest.raises(Rejection, match="changed while"):
        read_file(str(path))


# --- lists -----------------------------------------------------------------------------------


def test_stdin_in_both_spellings(folder: Path, monkeypatch) -> None:
    for separator in ("\n", "\0"):
        text = separator.join(["part0/001.png", "part1/010.png", "part0/001.png", ""])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        monkeypatch.chdir(folder)
        source = open_source("-")
        ids = [source.id(n) for n in range(len(source))]
        assert ids == ["part0/001.png", "part1/010.png", "part0/001.png#2"]
        assert "listed again" in source.notes()[0]


def test_listed_paths_that_do_not_work_are_set_aside(folder: Path, crop, tmp_path: Path) -> None:
    lines = ["pictures/part0/001.png", "missing.png", "pictures", str(folder / "part0/002.png")]
    (tmp_path / "list.txt").write_text("\n".join(lines))
    source = open_source(tmp_path / "list.txt")
    assert source.signature(1) == "missing"
    assert reasons(source, crop) == {
        "missing.png": "file not found",
        "pictures": "a folder, not a file",
    }


def test_unique_ids() -> None:
    assert unique_ids(["a", "b", "a", "a#2", "a"]) == ["a", "b", "a#3", "a#2", "a#4"]


# --- tar -------------------------------------------------------------------------------------


def test_one_image_a_key(make_tar, encoded) -> None:
    names = ["./x/1.seg.png", "x/1.png", "x/1.jpg", "x/1.cls", "IMG.2020.png", "IMG.2021.png"]
    source = open_source(make_tar([(name, encoded[0]) for name in names]))
    assert [source.id(n) for n in range(len(source))] == ["x/1", "IMG.2020", "IMG.2021"]
    assert "2 further images" in source.notes()[0]


def test_same_key_in_two_shards(tmp_path: Path, encoded, crop) -> None:
    for number in (0, 1):
        write_tar(tmp_path / f"{number}.tar", [("1.png", encoded[number])])
    source = open_source(tmp_path)
    assert [source.id(n) for n in range(2)] == ["1", "1#2"]
    assert source.read(1) == encoded[1]


def test_members_cannot_escape(make_tar, encoded, crop, tmp_path: Path) -> None:
    path = make_tar(
        [("../../evil.png", encoded[0]), ("/abs.png", encoded[1]), ("ok.png", encoded[2])]
    )
    with tarfile.open(path, "a") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo(f"link{kind!r}.png")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    before = sorted(tmp_path.rglob("*"))
    source = open_source(path)
    assert reasons(source, crop) == {"../../evil": "member name points outside the archive"}
    assert [source.id(n) for n in range(len(source))] == ["../../evil", "abs", "ok"]
    assert "4 links or special members" in source.notes()[0]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_damaged_archive_is_used_as_far_as_it_goes(make_tar, mode, crop, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (30, 40, 40, 3), dtype=np.uint8)
    path = make_tar([(f"{n:02d}.png", as_png(noise[n])) for n in range(30)], "a.tar", mode)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    try:
        source = open_source(path)
    except InputError as error:  # bzip2 may lose its only block
        assert mode == "w:bz2" and "damaged" in str(error)
        return
    stream = Stream(source, crop)
    assert 10 < sum(len(batch) for batch in stream) < 25
    assert any("damaged" in note for note in source.notes()) or stream.rejected


def test_tar_with_a_member_of_negative_size_ends(tmp_path: Path, encoded) -> None:
    path = write_tar(tmp_path / "a.tar", [("1.png", encoded[0]), ("2.png", encoded[1])])
    data = bytearray(path.read_bytes())
    start = 512 + -(-len(encoded[0]) // 512) * 512
    data[start + 124 : start + 136] = b"\xff" * 8 + (2**32 - 4096).to_bytes(4, "big")
    checksum = 256 + sum(data[start : start + 148]) + sum(data[start + 156 : start + 512])
    data[start + 148 : start + 156] = b"%06o\0 " % checksum
    path.write_bytes(data)
    source = open_source(path)
    assert len(source) >= 1 and source.read(0) == encoded[0]


def test_more_shards_than_open_files(tmp_path: Path, encoded, crop, pictures) -> None:
    for number, data in enumerate(encoded[:20]):
        write_tar(tmp_path / f"{number:02d}.tar", [(f"{number}.png", data)])
    batches = list(Stream(open_source(tmp_path), crop, 20, shuffle_seed=1, workers=4))
    order = np.random.RandomState(1).permutation(20)
    np.testing.assert_array_equal(batches[0].images, np.moveaxis(pictures[order][:, :6, :6], 3, 1))


def test_an_archive_that_expands_beyond_the_disk(make_tar, monkeypatch, encoded) -> None:
    path = make_tar([("1.png", b"\0" * 3_000_000)], "a.tar.gz", "w:gz")
    usage = spool_module.shutil._ntuple_diskusage(10**7, 9 * 10**6, 4_000_000)
    monkeypatch.setattr(spool_module.shutil, "disk_usage", lambda where: usage)
    with pytest.raises(InputError, match="temporary space"):
        open_source(path)


# --- parquet ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffled", [False, True])
def test_parquet_ids_nulls_and_paths(tmp_path: Path, encoded, crop, shuffled: bool) -> None:
    rows = [
        {"bytes": encoded[0], "path": "a.png"},
        {"bytes": None, "path": "/etc/passwd"},
        None,
        {"bytes": b"junk", "path": None},
        {"bytes": encoded[1], "path": None},
    ]
    table = pa.table({"image_id": ["a", "b", None, "a", "e"], "image": rows})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    source = open_source(tmp_path / "x.parquet")
    if shuffled:
        source.prepare_random()
    assert [source.id(n) for n in range(5)] == ["a", "b", "2", "a#2", "e"]
    assert reasons(source, crop) == {
        "b": "no image bytes in this row",
        "2": "no image bytes in this row",
        "a#2": "not an image of a supported format",
    }
    assert source.read(4) == encoded[1]
    source.close()


def test_parquet_reads_each_row_group_once_in_order(tmp_path: Path, encoded, monkeypatch) -> None:
    pq.write_table(pa.table({"png": encoded}), tmp_path / "x.parquet", row_group_size=5)
    source = open_source(tmp_path / "x.parquet")
    calls = []
    real = pq.ParquetFile.read_row_group

    def counted(self, group, columns):
        calls.append(group)
        return real(self, group, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    source._cache.clear()
    for position in range(len(source)):
        assert source.read(position) == encoded[position]
    assert calls == list(range(8))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [b"x"], "b": [b"y"]}, "several columns hold bytes"),
        ({"text": ["x"]}, "none holds bytes"),
        ({"image": pa.array([], pa.binary())}, "no row"),
    ],
)
def test_unusable_parquet(tmp_path: Path, columns, message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=message):
        open_source(tmp_path / "x.parquet")


def test_damaged_parquet(tmp_path: Path, encoded) -> None:
    pq.write_table(pa.table({"png": encoded}), tmp_path / "x.parquet")
    data = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(data[:-30])
    with pytest.raises(InputError, match="as parquet"):
        open_source(tmp_path / "x.parquet")


# --- arrays ----------------------------------------------------------------------------------


def test_gray_images() -> None:
    gray = np.arange(2 * 4 * 5, dtype=np.uint8).reshape(2, 4, 5)
    np.testing.assert_array_equal(open_array(gray).read(1), np.dstack([gray[1]] * 3))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_embeddings_are_unit_rows(tmp_path: Path, dtype) -> None:
    rows = np.random.default_rng(0).normal(size=(9, 4)).astype(dtype)
    np.save(tmp_path / "e.npy", rows)
    source = open_source(tmp_path / "e.npy")
    assert source.kind == "embeddings" and len(source) == 9
    assert source.read(3).dtype == np.float32
    expected = rows[3].astype(float) / np.linalg.norm(rows[3].astype(float))
    np.testing.assert_allclose(source.read(3), expected, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_bad_embedding_rows_are_named(tmp_path: Path, value: float, monkeypatch) -> None:
    monkeypatch.setattr("ttgcd.streams.arrays._CHECK_BYTES", 4 * 8 * 10)  # ten rows a piece
    rows = np.ones((57, 4), np.float32)
    rows[43] = value
    rows[50] = value
    np.save(tmp_path / "e.npy", rows)
    with pytest.raises(InputError, match="row 43 "):
        open_source(tmp_path / "e.npy")


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "u1"])
def test_rows_of_a_file_are_read_without_a_map(tmp_path: Path, dtype: str, monkeypatch) -> None:
    values = (100 * np.random.default_rng(0).random((1000, 2, 4))).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    rows = Rows(str(tmp_path / "a.npy"))
    monkeypatch.delattr(np, "memmap")  # its pages would count as memory of the process
    np.testing.assert_array_equal(rows.get(10, 20), values[10:20])
    np.testing.assert_array_equal(rows.take([5, 900, 3]), values[[5, 900, 3]])
    np.testing.assert_array_equal(rows.take([7, 8, 9]), values[7:10])
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:500])
    with pytest.raises(InputError, match="shorter"):
        rows.take([999, 2])


def test_array_fingerprint_follows_the_content() -> None:
    one = np.ones((5, 4), np.float32)
    other = one.copy()
    other[2, 1] = 2
    assert open_array(one).fingerprint() == open_array(one.copy()).fingerprint()
    assert open_array(one).fingerprint() != open_array(other).fingerprint()
