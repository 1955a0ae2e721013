"""Formats beyond the old six: read where they can be, named where they cannot."""

from __future__ import annotations

import builtins
import importlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from ttgcd.errors import InputError
from ttgcd.streams import Rejection, open_source
from ttgcd.streams import formats as formats_module
from ttgcd.streams.decode import decode

from .conftest import write_tar

#: the first bytes of a HEIC file from a phone
HEIC_HEAD = b"\x00\x00\x00\x24ftypheic\x00\x00\x00\x00mif1MiHEmiafMiHBheic" + bytes(64)


def picture(kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (32, 24), (200, 30, 60)).save(file, kind)
    return file.getvalue()


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow was built without AVIF")
def test_avif_is_read_from_a_folder_and_a_tar(tmp_path: Path) -> None:
    data = picture("AVIF")
    assert decode(data).shape == (24, 32, 3)
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.avif").write_bytes(data)
    (folder / "B.AVIF").write_bytes(data)
    source = open_source(folder)
    assert [source.id(n) for n in range(len(source))] == ["B.AVIF", "a.avif"]
    assert len(open_source(write_tar(tmp_path / "s.tar", [("1.avif", data)]))) == 1


def test_heic_is_read_when_its_reader_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("pillow_heif")
    pixels = decode(picture("HEIF"))
    assert pixels.shape == (24, 32, 3)
    assert np.abs(pixels.reshape(-1, 3).mean(axis=0) - (200, 30, 60)).max() < 12


def test_an_image_that_cannot_be_read_is_a_sample_to_be_set_aside(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(picture("JPEG"))
    (tmp_path / "IMG_1.CR2").write_bytes(b"II*\0")
    (tmp_path / "IMG_2.nef").write_bytes(b"II*\0")
    (tmp_path / "Thumbs.db").write_bytes(b"x")
    source = open_source(tmp_path)
    assert [source.id(n) for n in range(len(source))] == ["IMG_1.CR2", "IMG_2.nef", "a.jpg"]
    with pytest.raises(Rejection, match="raw file: export it"):
        source.read(0)
    unread, others = source.notes()
    assert unread.startswith("not readable here: 1 .cr2, 1 .nef (.cr2, .nef: a camera's raw file")
    assert others == "1 file that is no image was left out (1 .db)"


def test_a_folder_of_raw_files_alone_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.arw").write_bytes(b"II*\0")
    with pytest.raises(InputError, match=r"no readable image .* 1 \.arw .*export"):
        open_source(tmp_path)
    with pytest.raises(InputError, match="raw file"):
        open_source(tmp_path / "a.arw")


def test_unread_members_of_a_tar_are_counted(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "s.tar", [("1.png", picture("PNG")), ("2.dng", b"II*\0")])
    (note,) = open_source(shard).notes()
    assert "not readable here: 1 .dng" in note


@pytest.fixture
def without_heif(monkeypatch: pytest.MonkeyPatch):
    """The module as it is where pillow-heif is not installed."""
    real = builtins.__import__

    def refuse(name, *args, **options):
        if name == "pillow_heif":
            raise ImportError(name)
        return real(name, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", refuse)
        patch.delitem(sys.modules, "pillow_heif", raising=False)
        spec = importlib.util.spec_from_file_location("formats_bare", formats_module.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def test_without_its_reader_heic_names_what_to_install(without_heif) -> None:
    assert "HEIF" not in without_heif.FORMATS
    assert "ttgcd[heic]" in without_heif.UNREAD[".heic"]
    assert "ttgcd[heic]" in without_heif.unknown_format(HEIC_HEAD)
    assert ".heic" not in without_heif.EXTENSIONS


def test_damaged_heic_is_set_aside() -> None:
    with pytest.raises(Rejection):
        decode(HEIC_HEAD)
