"""Several sources at once, as an unquoted ``*.jpg`` gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ttgcd.errors import InputError
from ttgcd.streams import open_source

from .conftest import write_tar


def ids(source) -> list[str]:
    return [source.id(n) for n in range(len(source))]


def test_two_folders_with_the_same_names(tmp_path: Path, encoded) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.png").write_bytes(encoded[0])
    (tmp_path / "c.png").write_bytes(encoded[1])
    write_tar(tmp_path / "s.tar", [("k.png", encoded[2])])
    given = [str(tmp_path / name) for name in ("a", "b/", "c.png", "s.tar")]
    source = open_source(given)
    start = str(tmp_path)
    assert ids(source) == [f"{start}/a/1.png", f"{start}/b/1.png", f"{start}/c.png",
                           f"{start}/s.tar/k"]  # fmt: skip
    assert source.read(2) == encoded[1] and source.read(3) == encoded[2]
    assert source.signature(0) == open_source(tmp_path / "a").signature(0)
    before = source.fingerprint()
    (tmp_path / "b" / "2.png").write_bytes(encoded[3])
    assert open_source(given).fingerprint() != before


def test_embeddings_do_not_mix(tmp_path: Path, folder: Path) -> None:
    np.save(tmp_path / "e.npy", np.ones((2, 4)))
    with pytest.raises(InputError, match="holds embeddings"):
        open_source([str(folder), str(tmp_path / "e.npy")])
