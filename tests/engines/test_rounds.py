"""Throughput mode without a cluster: shards from a snapshot, merged at the end of a round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.engines.worlds import Pictures as Images
from tests.engines.worlds import embedding_task, embeddings, image_task, results
from ttgcd.engines.folder import run_to_folder
from ttgcd.engines.rounds import RoundStream, Shard, ShardDone, observe_shard
from ttgcd.errors import InputError
from ttgcd.methods.pact import Pact
from ttgcd.methods.registry import load_method
from ttgcd.prototypes.bank import PrototypeBank
from ttgcd.streams.arrays import open_array
from ttgcd.streams.stream import Stream

DATA = embeddings(3000)


def rounds(out, shards: int, sync_every: int, source=None, task=None, **options):
    """A run in this process whose shards are observed one after the other, last one first."""
    source = source or open_array(DATA)
    task = task or embedding_task()
    preprocess = None if task.vlm is None else task.vlm.preprocess
    method = Pact(warmup=100, epochs=2, realign_batch_size=32)

    def observe(given: Sequence[Shard]) -> list[ShardDone]:
        done = []
        for shard in reversed(given):
            copy = Pact(**method.config())
            copy.start(task)
            stream = Stream(source, preprocess, 32, 3, workers=0)
            encoder = None if task.vlm is None else task.encoder(method.norms())
            done.append(observe_shard(copy, stream, encoder, shard))
        return done[::-1]

    def make(place: int, index: int) -> Stream:
        exact = Stream(source, preprocess, 32, 3, place, index, workers=0)
        return RoundStream(exact, method, observe, shards, sync_every)

    run_to_folder(method, task, make, out, {"shards": shards, "sync": sync_every}, **options)
    return pq.read_table(out / "assignments.parquet")


def exact(out):
    method = Pact(warmup=100)

    def make(place: int, index: int) -> Stream:
        return Stream(open_array(DATA), None, 32, 3, place, index, workers=0)

    run_to_folder(method, embedding_task(), make, out, {})
    return pq.read_table(out / "assignments.parquet")


def test_one_shard_of_one_batch_is_the_exact_engine(tmp_path):
    assert rounds(tmp_path / "rounds", 1, 1).equals(exact(tmp_path / "exact"))


def test_every_sample_is_answered_once_and_few_differently(tmp_path):
    there, here = exact(tmp_path / "exact"), rounds(tmp_path / "rounds", 4, 3)
    assert here.column("id").equals(there.column("id"))
    assert here.column("batch").equals(there.column("batch"))
    same = np.mean(np.array(here.column("category")) == np.array(there.column("category")))
    assert 0.95 < same < 1.0


def test_unreadable_images_are_set_aside_once(tmp_path):
    broken = ("0003.png", "0150.png", "0398.png", "0399.png")
    table = rounds(tmp_path / "out", 2, 2, Images.make(400, broken=broken), image_task())
    assert table.num_rows == 396
    rejected = (tmp_path / "out" / "rejected.csv").read_text().splitlines()
    assert sorted(line.split(",")[0] for line in rejected[1:]) == sorted(broken)


def test_a_stopped_run_goes_on_at_the_last_whole_round(tmp_path):
    rounds(tmp_path / "whole", 3, 2)

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "stream" and done > 1500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rounds(tmp_path / "stopped", 3, 2, progress=stop, checkpoint_every_batches=1)
    rounds(tmp_path / "stopped", 3, 2, resume=True)
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")


def test_a_method_that_cannot_be_merged_is_refused():
    stream = Stream(open_array(DATA), None, 32, workers=0)
    with pytest.raises(InputError, match="sync_every goes with"):
        RoundStream(stream, load_method("zero-shot"), lambda shards: [], 1, 1)


def test_merging_adds_evidence_and_averages_the_prototypes_that_moved():
    start = PrototypeBank(
        np.eye(3, dtype=np.float32)[:2], np.array([1.0, np.inf]), np.eye(3, dtype=np.float32)[2:], 1
    )
    moved = np.array([[0.6, 0.8, 0.0], [0.0, 1.0, 0.0]], np.float32)
    copy = PrototypeBank(moved, np.array([1.5, np.inf]), start.novel, 1)
    other = PrototypeBank(start.known, np.array([3.0, np.inf]), start.novel, 1)
    merged = start.merged([copy, other])
    np.testing.assert_allclose(merged.known, moved, atol=1e-6)
    np.testing.assert_array_equal(merged.novel, start.novel)
    np.testing.assert_array_equal(merged.evidence, [3.5, np.inf])
