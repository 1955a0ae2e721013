"""A source that was opened here reads the same in another process."""

from __future__ import annotations

import io
import pickle
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ttgcd.streams.open import open_source


def pictures(count: int) -> list[bytes]:
    rng = np.random.default_rng(0)
    files = []
    for _ in range(count):
        buffer = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(buffer, "PNG")
        files.append(buffer.getvalue())
    return files


def write_tar(path, mode):
    with tarfile.open(path, mode) as archive:
        for number, data in enumerate(pictures(5)):
            info = tarfile.TarInfo(f"{number}.png")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def write_parquet(path):
    pq.write_table(pa.table({"image": pictures(7)}), path, row_group_size=3)
    return path


def write_folder(path):
    path.mkdir()
    for number, data in enumerate(pictures(4)):
        (path / f"{number}.png").write_bytes(data)
    return path


@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize(
    "write",
    [
        lambda folder: write_tar(folder / "a.tar", "w"),
        lambda folder: write_tar(folder / "a.tar.gz", "w:gz"),
        lambda folder: write_parquet(folder / "a.parquet"),
        lambda folder: write_folder(folder / "a"),
    ],
    ids=["tar", "compressed tar", "parquet", "folder"],
)
def test_a_source_can_be_sent_to_another_process(tmp_path, write, random):
    source = open_source(write(tmp_path))
    if random:
        source.prepare_random()
    source.read(1)  # with a file open
    sent = pickle.loads(pickle.dumps(source))
    assert sent.fingerprint() == source.fingerprint()
    assert sent.notes() == source.notes()
    for position in reversed(range(len(source))):
        assert sent.id(position) == source.id(position)
        assert sent.read(position) == source.read(position)
