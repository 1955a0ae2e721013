"""Names and labels: read as meant, or refused with the line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ttgcd.errors import InputError
from ttgcd.streams import read_labels, read_names


def test_names_in_line_in_a_file_and_in_python(tmp_path: Path) -> None:
    assert read_names(" cat, sea lion ,dog") == ("cat", "sea lion", "dog")
    assert read_names(["cat ", "dog"]) == ("cat", "dog")
    path = tmp_path / "names.txt"
    path.write_bytes("\ufeffcat\r\n\r\n  Bär, brauner \n\n犬\n".encode())
    assert read_names(f"@{path}") == ("cat", "Bär, brauner", "犬")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "no class name"),
        ("  ", "no class name"),
        ([], "no class name"),
        ("cat,,dog", "name 2 of 3"),
        ("cat,dog,", "name 3 of 3"),
        ("cat,dog,cat ,dog,cat", "'cat', 'dog'"),
        ("@/no/such/names.txt", "no such names file"),
        ("a\x07b", "control characters"),
        ("names.csv", "put @ in front"),
        ("my classes.TXT", "put @ in front"),
        ("dog;guitar", "separated by ';': separate them by commas"),
        ("dog|guitar", "separated by"),
        ("dog\tguitar", "separated by"),
    ],
)
def test_wrong_names(given, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_names(given)


def test_wrong_names_files(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes(b"cat\nd\xf6g\n")
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        read_names(f"@{path}")
    path.write_bytes(b"\n\n")
    with pytest.raises(InputError, match="no class name"):
        read_names(f"@{path}")
    with pytest.raises(InputError, match="cannot read"):
        read_names(f"@{tmp_path}")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("dog, guitar ,house,\n", "names.txt", "one name a line"),
        ("dog,guitar\n", "names.txt", "separated by ','"),
        ("dog;guitar\nhouse\n", "names.txt", "separated by ';'"),
        ("cat\ndog,\n", "names.txt", "'dog,'"),
        ("id,label\n1.jpg,cat\n", "labels.csv", "looks like a table"),
    ],
)
def test_a_list_that_would_become_one_class_is_refused(
    tmp_path: Path, content: str, name: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_names(f"@{tmp_path / name}")


def test_a_path_to_an_existing_file_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("cat\ndog\n")
    with pytest.raises(InputError, match="put @ in front"):
        read_names(str(tmp_path / "names"))
    assert read_names("AC/DC, rock/pop") == ("AC/DC", "rock/pop")


def test_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes('\ufefflabel,id,more\r\ncat,"a, b.jpg",1\r\n\r\n dog ,c.jpg,2\r\n'.encode())
    assert read_labels(path) == {"a, b.jpg": "cat", "c.jpg": "dog"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: the header"),
        ("name,label\na,b\n", "line 1: the header"),
        ("id,label\n", "no row"),
        ("id,label\na,cat\nb\n", "line 3: 1 fields instead of 2"),
        ("id,label\na,cat,dog\n", "line 2: 3 fields"),
        ("id,label\na,\n", "line 2: the label is empty"),
        ("id,label\n,cat\n", "line 2: the id is empty"),
        ("id,label\na,cat\nb,dog\na,cat\n", "line 4: id 'a' is already on line 2"),
        ('id,label\na,"cat\n', "not valid CSV"),
        ('id,label\na,"cat"x\n', "line 2: not valid CSV"),
    ],
)
def test_wrong_labels(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path / "labels.csv")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=60), head=st.sampled_from([b"", b"id,label\n", b"cat\ndog\n"]))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes, head: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(head + data)
    for read in (read_labels, lambda where: read_names(f"@{where}")):
        try:
            found = read(path)
        except InputError as error:
            assert str(error)
        else:
            assert found and all(found)
