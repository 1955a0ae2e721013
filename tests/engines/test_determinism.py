"""Same input, same seed: same bytes; another number of threads: same answers."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from threadpoolctl import threadpool_limits

from tests.engines.worlds import (
    Pictures,
    anchors,
    embedding_stream,
    embedding_task,
    embeddings,
    results,
    run_images,
)
from ttgcd.engines.folder import run_to_folder
from ttgcd.methods.pact import Pact


def test_two_runs_leave_the_same_bytes(tmp_path):
    source = Pictures.make(200, broken=("0003.png",))
    run_images(tmp_path / "a", source)
    run_images(tmp_path / "b", source, checkpoint_every_batches=1)
    assert results(tmp_path / "a") == results(tmp_path / "b")


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_the_number_of_threads_does_not_change_the_answers(tmp_path, threads):
    source = Pictures.make(300)
    data = embeddings(1000, dim=512)
    task = embedding_task(anchors=anchors(512))
    tables = {}
    for count in (1, 3):
        threads(count)
        with threadpool_limits(count):
            run_images(tmp_path / f"images-{count}", source)
            make = embedding_stream(data, batch_size=128)
            run_to_folder(Pact(warmup=256), task, make, tmp_path / f"rows-{count}", {})
        for kind in ("images", "rows"):
            tables[kind, count] = pq.read_table(tmp_path / f"{kind}-{count}/assignments.parquet")
    for kind in ("images", "rows"):
        one, three = tables[kind, 1], tables[kind, 3]
        assert one.column("id") == three.column("id")
        assert one.column("category") == three.column("category")
        for column in ("score", "margin"):
            np.testing.assert_allclose(one.column(column), three.column(column), atol=1e-4)
