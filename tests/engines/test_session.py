"""Sessions: many on one model, in any chopping, each as if it were alone."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest
import torch

from tests.vlm.checkpoints import write_clip
from ttgcd.engines.chop import Chopper, joined
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.methods.registry import load_method
from ttgcd.testing.model import TinyVLM, batches, embedding_world, image_world
from ttgcd.testing.runs import equal_parts, opened, task_for
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors


@pytest.fixture(scope="module")
def vlm(tmp_path_factory):
    torch.set_num_threads(1)
    return load_vlm(str(write_clip(tmp_path_factory.mktemp("model") / "clip")), device="cpu")


def test_ten_sessions_in_threads_interleaved_at_random_equal_their_lone_runs(vlm) -> None:
    """Re-aligning, adapting and frozen methods beside each other on one real architecture."""
    names = ("cat", "dog", "tree")
    anchors = text_anchors(vlm, names, cache=False)
    methods = ["pact", "tent++", "batclip++", "kmeans", "talon"] * 2
    config = {"pact": {"warmup": 24, "epochs": 2, "lr": 0.1}, "talon": {"warmup": 24}}
    worlds = [image_world(56, 5, vlm.preprocess.size, seed=i)[0] for i in range(10)]

    def start(i: int):
        task = Task(names, anchors, 2, vlm, vlm.logit_scale, seed=i)
        return opened(load_method(methods[i], **config.get(methods[i], {})), task, size=8)

    alone = []
    for i, data in enumerate(worlds):
        stream = start(i)
        for batch in batches(data, 8):
            stream.session.push(batch)
        alone.append(stream.finish(56).parts)
    streams = [start(i) for i in range(10)]
    waiting = [batches(data, 3) for data in worlds]  # another chopping besides
    locks = [Lock() for _ in streams]  # one stream's images arrive in their order
    turns = [i for i in range(10) for _ in waiting[i]]
    random.Random(0).shuffle(turns)

    def turn(i: int) -> None:
        with locks[i]:
            streams[i].session.push(waiting[i].pop(0))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(turn, turns))
    for stream, expected in zip(streams, alone):
        assert equal_parts(stream.finish(56).parts, expected)


def test_after_the_warmup_the_session_encodes_with_the_new_norms(vlm) -> None:
    names = ("cat", "dog", "tree")
    task = Task(names, text_anchors(vlm, names, cache=False), 2, vlm, vlm.logit_scale)
    session = opened(Pact(warmup=16, epochs=2, lr=0.5), task, size=8).session
    data = image_world(24, 5, vlm.preprocess.size)[0]
    assert session.encoder.fingerprint == vlm.encoder().fingerprint
    answers = [answer for batch in batches(data, 8) for answer in session.push(batch)]
    norms = answers[1].norms
    assert norms is not None and answers[2].norms is None
    assert session.encoder.fingerprint == vlm.encoder(norms).fingerprint
    np.testing.assert_array_equal(answers[2].features, vlm.encoder(norms)(data[16:]))


@pytest.mark.parametrize("novel", [2, None])
def test_each_image_is_encoded_once_per_encoder_version(novel) -> None:
    """Also when the number of novel categories is estimated on the way."""
    vlm = TinyVLM()
    stream = opened(Pact(warmup=40, epochs=2), task_for(vlm, novel=novel), size=16)
    for batch in batches(image_world(90, 5)[0], 16):
        stream.session.push(batch)
    stream.finish(90)
    # 48 before the buffer is full; 40 of them and the 8 behind it again under the new norms.
    assert vlm.encoded == 48 + 48 + (90 - 48)


def test_the_number_is_settled_once_and_stays_after_a_resume() -> None:
    first = opened(Pact(warmup=40, epochs=0), task_for(TinyVLM(), novel=None), size=16)
    data = batches(image_world(90, 5)[0], 16)
    for batch in data[:4]:
        first.session.push(batch)
    found = first.session.estimate
    assert found is not None and first.session.method.novel == found.novel
    second = opened(Pact(warmup=40, epochs=0), task_for(TinyVLM(), novel=None), size=16)
    second.session.load(first.session.method.state_dict(), first.session.state())
    assert second.session.estimate == found and not second.session.method.wants_count


def test_chopping_keeps_every_sample_in_order() -> None:
    rows = embedding_world(50)
    rng = random.Random(1)
    chopper, begin, whole = Chopper(8), 0, []
    while begin < 50:
        size = rng.randint(1, 13)
        part = batches(rows, 50)[0].split(begin)[1].split(min(size, 50 - begin))[0]
        whole += chopper.push(part)
        begin += len(part)
    whole += chopper.flush()
    assert [len(batch) for batch in whole] == [8] * 6 + [2]
    back = joined(whole)
    assert back.ids == batches(rows, 50)[0].ids and back.start == 0
    assert back.all_places() == tuple(range(50))
    np.testing.assert_array_equal(back.features, rows)


class Asks(Pact):
    """Wants to answer for all samples again whenever a hundred more have been seen."""

    def learn(self, batch, warming=False):
        from dataclasses import replace

        answer = super().learn(batch, warming)
        answer.final[:] = False
        return replace(answer, reassign=self.seen % 100 == 0)

    def end_warmup(self):
        answer = super().end_warmup()
        answer.final[:] = False
        return answer

    def revise(self, start: int, features: np.ndarray) -> Answer:
        return Answer.make(
            start,
            np.full(len(features), self.seen // 100),
            np.ones(len(features)),
            final=self.seen == 400,
        )


def test_a_method_that_asks_is_handed_all_features_again() -> None:
    rows = embedding_world(400)
    stream = opened(Asks(warmup=20), task_for(None), size=20)
    for batch in batches(rows, 7):
        stream.session.push(batch)
    result = stream.finish(400)
    assert (result.category == 4).all() and result.final.all()
