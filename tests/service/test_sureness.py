"""How likely an answer is right: in the service as in a folder run."""

from __future__ import annotations

import io

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.service.conftest import STREAM, learned, send, wait_for
from tests.service.test_finish import SCOUT, folder_run, numbered
from tests.service.test_streams import URL
from ttgcd.methods.answer import Answer
from ttgcd.prototypes.confidence import Confidence
from ttgcd.service.rows import LiveRows
from ttgcd.service.sureness import FEWEST
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch


def downloaded(client, column):
    data = client.get(f"{URL}/download?format=parquet").content
    table = pq.read_table(io.BytesIO(data))
    return dict(zip(table.column("id").to_pylist(), table.column(column).to_pylist()))


def close(one, other):
    return one.keys() == other.keys() and all(abs(one[k] - other[k]) < 2e-3 for k in one)


@pytest.mark.parametrize("stream", [STREAM, SCOUT], ids=["paper", "scout"])
def test_a_finished_stream_states_the_confidence_of_a_folder_run(serve, icons, tmp_path, stream):
    images = numbered(icons, 0, 120)
    table = pq.read_table(folder_run(images, tmp_path, stream) / "assignments.parquet")
    told = dict(zip(table.column("id").to_pylist(), table.column("confidence").to_pylist()))
    client = serve()
    client.post("/v1/streams", json=stream)
    send(client, images)
    client.post(f"{URL}/finish")
    assert close(downloaded(client, "confidence"), told)
    rows = client.get(f"{URL}/images?limit=120").json()["images"]
    assert close({row["id"]: row["confidence"] for row in rows}, told)
    client.__exit__(None, None, None)

    client = serve()  # what was judged is kept
    assert close(downloaded(client, "confidence"), told)


def test_while_a_stream_goes_on_its_answers_are_judged_in_the_background(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, numbered(icons, 0, 96))
    learned(client, 96)
    learner = client.app.state.house.stream("icons").learner
    wait_for(lambda: learner.rows.answered() == 96 and not len(learner.rows.unjudged()))
    judged = learner.rows.column("sure")
    assert ((judged >= 0) & (judged <= 1)).all()
    assert np.allclose(list(downloaded(client, "confidence").values()), judged)
    # Further images are judged at once, by the facts of before.
    results = send(client, numbered(icons, 96, 106)).json()["results"]
    told = np.array([result["answer"]["confidence"] for result in results], np.float32)
    before = set(learner.rows.column("category")[:96].tolist())
    seen = [result["answer"]["category"] in before for result in results]
    judged = learner.rows.column("sure")[96:]
    assert sum(seen) > 5 and np.isnan(judged[~np.array(seen)]).all()
    assert np.allclose(told[seen], judged[seen])


def rows_of(category, features):
    rows = LiveRows()
    count = len(category)
    batch = Batch(("",) * count, 0, tuple(range(count)), count)
    rows.write(batch, Answer.make(0, category, np.ones(count), features=features))
    return rows


def test_an_answer_that_the_facts_do_not_know_waits_for_new_ones():
    rng = np.random.default_rng(0)
    anchors = np.eye(8, dtype=np.float32)[:3]
    category = np.repeat([0, 1, 2, 3], FEWEST // 4)
    features = np.eye(8, dtype=np.float32)[category] + 0.1 * rng.normal(size=(FEWEST, 8))
    features = (features / np.linalg.norm(features, axis=1, keepdims=True)).astype(np.float32)
    rows = rows_of(category, features)
    assert len(rows.unjudged()) == FEWEST and not np.isnan(rows.confidence()).any()
    rows.judged_by(Confidence(features, category, anchors))
    rows.judge(np.arange(FEWEST), features)
    assert not len(rows.unjudged())

    rows.write(None, Answer.make(0, [4], [1.0], features=features[:1]))  # born since
    assert rows.unjudged().tolist() == [0]
    rows.write(None, Answer.make(5, [1], [1.0]))  # revised, and nobody said by which features
    assert rows.unjudged().tolist() == [0, 5]
    rows.judge(np.array([5]), features[5:6])
    assert rows.unjudged().tolist() == [0] and not np.isnan(rows.confidence()).any()


def test_rows_that_an_earlier_version_kept_are_not_judged_yet():
    rows = rows_of(np.array([0, 1]), None)
    state = rows.state()
    old = State({k: v for k, v in state.arrays.items() if k != "sure"}, state.values)
    again = LiveRows()
    again.load(old)
    assert again.unjudged().tolist() == [0, 1]
    assert again.column("category").tolist() == [0, 1]
