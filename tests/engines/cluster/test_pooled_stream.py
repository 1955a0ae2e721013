"""The Ray engine leaves the bytes of the local engine, whatever happens to its workers."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")

from tests.engines.worlds import (  # noqa: E402
    Pictures,
    embedding_task,
    embeddings,
    image_task,
    results,
    run_images,
)
from ttgcd.engines.cluster.pool import EncoderPool, model_of  # noqa: E402
from ttgcd.engines.cluster.stream import AHEAD, PooledStream  # noqa: E402
from ttgcd.engines.folder import run_to_folder  # noqa: E402
from ttgcd.methods.pact import Pact  # noqa: E402
from ttgcd.methods.scout import Scout  # noqa: E402
from ttgcd.streams.arrays import open_array  # noqa: E402
from ttgcd.streams.base import Source  # noqa: E402
from ttgcd.streams.stream import Stream  # noqa: E402

BROKEN = ("0003.png", "0031.png", "0032.png", "0150.png", "0397.png", "0398.png", "0399.png")


@pytest.fixture(scope="module")
def pool():
    with EncoderPool(model_of(image_task().vlm), workers=2) as made:
        yield made


def pooled(out, pool, source, shuffle_seed=None, **options):
    task = options.pop("task", None) or image_task()
    method = options.pop("method", None) or Pact(
        warmup=64, epochs=3, optimiser="adam", realign_batch_size=32
    )
    streams = []

    def make(place: int, index: int) -> Stream:
        streams.append(PooledStream(source, method, pool, 32, shuffle_seed, place, index, 0.5))
        return streams[-1]

    settings = {"warmup": 64, "input": source.fingerprint()}
    run_to_folder(method, task, make, out, settings, **options)
    return streams[-1]


@pytest.mark.parametrize("shuffle_seed", [None, 5])
def test_same_bytes_as_the_local_engine_with_unreadable_samples(tmp_path, pool, shuffle_seed):
    source = Pictures.make(400, broken=BROKEN)
    run_images(tmp_path / "local", source, shuffle_seed=shuffle_seed)
    pooled(tmp_path / "ray", pool, source, shuffle_seed)
    assert results(tmp_path / "ray") == results(tmp_path / "local")


def test_same_bytes_for_a_method_that_never_stops_training(tmp_path, pool):
    source = Pictures.make(200, broken=BROKEN)

    def method() -> Pact:
        return Pact(warmup=64, epochs=2, continual_lr=1e-3, realign_batch_size=32)

    run_images(tmp_path / "local", source, method())
    pooled(tmp_path / "ray", pool, source, method=method())
    assert results(tmp_path / "ray") == results(tmp_path / "local")


@pytest.mark.parametrize("novel", [2, None])
def test_workers_answer_from_the_last_fit_of_scout_and_no_byte_differs(tmp_path, pool, novel):
    source = Pictures.make(1200, broken=BROKEN)
    made = {"warmup": 64, "growth": 3.0, "restarts": 2, "fresh_restarts": 1, "words": 0}
    task = replace(image_task(), novel=novel)
    run_images(tmp_path / "local", source, Scout(**made), task=task)
    method = _Counting(**made)
    pooled(tmp_path / "ray", pool, source, method=method, task=task)
    assert results(tmp_path / "ray") == results(tmp_path / "local")
    # Two batches of the warm-up, and a few that were under way at each of the refits, are answered
    # here; all others by workers.
    assert method.here + method.there == 38
    assert method.there >= 5
    assert method.here >= 3  # or no refit came between


class _Counting(Scout):
    """Counts the batches that it has answered itself."""

    here = there = 0

    def observe(self, batch):
        self.here += 1
        return super().observe(batch)

    def observe_answered(self, batch, answer):
        self.there += 1
        return super().observe_answered(batch, answer)


def test_readers_wait_for_a_session_that_is_slow(tmp_path, pool):
    """Back-pressure: no more than the window is read ahead, however long the session takes."""
    source = _Logged(Pictures.make(3200), str(tmp_path / "log"))
    method = Scout()
    method.start(image_task())
    batches = iter(PooledStream(source, method, pool, 32))
    next(batches)
    before = -1
    while (read := os.path.getsize(tmp_path / "log")) != before:
        before = read
        time.sleep(1.0)
    assert 32 < read <= 32 * (AHEAD * pool.workers + 1)
    batches.close()


def test_pixels_travel_only_as_long_as_the_method_wants_them(tmp_path, pool, monkeypatch):
    """The object store holds features: images are decoded and encoded in the same worker."""
    came = []
    take = PooledStream._take

    def noting(self, place, done):
        came.append((done.version, done.pixels is not None))
        take(self, place, done)

    monkeypatch.setattr(PooledStream, "_take", noting)
    pooled(tmp_path / "pact", pool, Pictures.make(400))
    assert any(pixels for version, pixels in came if version == 0)  # re-alignment wants them
    assert len([True for version, pixels in came if version == 1]) >= 10
    assert not any(pixels for version, pixels in came if version == 1)
    came.clear()
    pooled(tmp_path / "scout", pool, Pictures.make(400), method=Scout(warmup=64, words=0))
    assert came and not any(pixels for _, pixels in came)


class _Logged(Source):
    """Pictures that leave a byte in a file for each one that is read."""

    kind = "images"

    def __init__(self, pictures, log):
        self.pictures, self.log = pictures, log

    def __len__(self):
        return len(self.pictures)

    def id(self, position):
        return self.pictures.id(position)

    def read(self, position):
        with open(self.log, "ab") as file:
            file.write(b".")
        return self.pictures.read(position)


def test_a_stopped_run_goes_on_and_leaves_the_same_bytes(tmp_path, pool):
    source = Pictures.make(400, broken=BROKEN)
    run_images(tmp_path / "local", source)

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "stream" and done > 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pooled(tmp_path / "ray", pool, source, progress=stop, checkpoint_every_batches=1)
    pooled(tmp_path / "ray", pool, source, resume=True)
    assert results(tmp_path / "ray") == results(tmp_path / "local")


def test_embeddings_come_through_a_pool_without_a_model(tmp_path, pool):
    data = embeddings(5000)
    for name in ("local", "ray"):
        method, source = Pact(warmup=256), open_array(data)

        def make(place: int, index: int, method=method, source=source, name=name) -> Stream:
            if name == "ray":
                return PooledStream(source, method, pool, 64, 3, place, index)
            return Stream(source, None, 64, 3, place, index)

        run_to_folder(method, embedding_task(), make, tmp_path / name, {})
    assert results(tmp_path / "ray") == results(tmp_path / "local")


def test_a_killed_and_a_frozen_worker_leave_no_trace(tmp_path, pool):
    """The frozen one is the slowest of all stragglers; the killed one comes back meanwhile."""
    source = Pictures.make(1200, broken=BROKEN)
    run_images(tmp_path / "local", source)
    first, second = pool.processes()
    harmed = []

    def harm(phase: str, done: int, total: int) -> None:
        if phase == "stream" and done > 200 and not harmed:
            harmed.append(first)
            os.kill(first, signal.SIGKILL)
        elif phase == "stream" and done > 700 and len(harmed) == 1:
            harmed.append(second)
            os.kill(second, signal.SIGSTOP)

    try:
        stream = pooled(tmp_path / "ray", pool, source, progress=harm)
    finally:
        os.kill(second, signal.SIGCONT)
    assert harmed == [first, second]
    assert stream.repeated
    assert results(tmp_path / "ray") == results(tmp_path / "local")


def test_features_are_those_of_the_encoder(pool):
    source = Pictures.make(100, broken=BROKEN)
    task = image_task()
    method = Pact(warmup=50, epochs=0)
    method.start(task)
    encode = task.encoder()
    local = Stream(source, task.vlm.preprocess, 32, workers=0)
    for here, there in zip(local, PooledStream(source, method, pool, 32), strict=True):
        assert here.ids == there.ids and here.places == there.places
        assert np.array_equal(encode(here.images), there.features)
