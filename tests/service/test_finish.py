"""A stream that is over, and one that goes on afterwards: the ids of folder runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.service.conftest import STREAM, learned, send, wait_for
from tests.service.test_streams import URL, categories_by_id
from ttgcd.discovery import discover
from ttgcd.discovery.run import go_on

Images = list[tuple[str, bytes]]


def folder_of(images: Images, folder: Path) -> Path:
    folder.mkdir()
    for name, data in images:
        (folder / name).write_bytes(data)
    return folder


def answers(out: Path) -> dict[str, int]:
    table = pq.read_table(out / "assignments.parquet")
    return dict(zip(table.column("id").to_pylist(), table.column("category").to_pylist()))


def numbered(icons: Images, begin: int, end: int) -> Images:
    return [(f"{n:04d}.png", icons[n][1]) for n in range(begin, end)]


#: The default method, to which a vocabulary matters.
SCOUT = {key: value for key, value in STREAM.items() if key not in ("preset", "epochs")}


def folder_run(images: Images, place: Path, stream: dict[str, Any] = STREAM) -> Path:
    options = {
        key: stream[key]
        for key in ("known", "novel", "batch_size", "preset", "vocabulary", "realign")
        if key in stream
    }
    changes = {key: stream[key] for key in ("warmup", "epochs") if key in stream}
    folder = folder_of(images, place / "first")
    return discover(
        folder, out=place / "out", model="mini", changes=changes, shuffle=False, **options
    ).out


def test_finish_gives_the_ids_of_a_folder_run_and_what_follows_goes_on_from_it(
    serve, icons, tmp_path
):
    first, second = numbered(icons, 0, 75), numbered(icons, 75, 130)
    out = folder_run(first, tmp_path)
    further = go_on(out, folder_of(second, tmp_path / "second"), out=tmp_path / "further")

    client = serve()
    client.post("/v1/streams", json=STREAM)
    assert client.post(f"{URL}/finish").status_code == 409, "nothing has arrived"
    send(client, first)
    info = client.post(f"{URL}/finish").json()
    assert (info["finished"], info["learned"]) == (75, 75), "the short batch was learned from, too"
    assert categories_by_id(client) == answers(out)
    assert client.post(f"{URL}/finish").json()["finished"] == 75, "twice is once"

    send(client, second)
    assert client.post(f"{URL}/finish").json()["finished"] == 130
    together = categories_by_id(client)
    assert {name: together[name] for name, _ in second} == answers(further.out)


def test_a_stream_may_be_finished_before_its_warm_up_is_full_and_restarted(serve, icons, tmp_path):
    first = numbered(icons, 0, 30)
    out = folder_run(first, tmp_path)
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, first)
    assert client.post(f"{URL}/finish").json()["warmed_up"]
    assert categories_by_id(client) == answers(out)
    client.__exit__(None, None, None)

    client = serve()
    assert client.get(URL).json()["finished"] == 30
    assert categories_by_id(client) == answers(out)
    send(client, numbered(icons, 30, 46))
    learned(client, 46)  # batches are counted from the end on
    wait_for(lambda: client.get(URL).json()["waiting"] == 0)


def test_the_default_method_gets_the_same_vocabulary_as_in_a_folder_run(serve, icons, tmp_path):
    first = numbered(icons, 0, 120)
    out = folder_run(first, tmp_path, SCOUT)
    client = serve()
    client.post("/v1/streams", json=SCOUT)
    send(client, first)
    assert client.post(f"{URL}/finish").json()["finished"] == 120
    assert categories_by_id(client) == answers(out)


def test_a_stream_with_the_realignment_first_has_the_ids_of_a_folder_run(serve, icons, tmp_path):
    stage = {"warmup": 40, "epochs": 2, "realign_batch_size": 20}
    stream = {**SCOUT, "realign": stage}
    first, second = numbered(icons, 0, 75), numbered(icons, 75, 130)
    out = folder_run(first, tmp_path, stream)
    further = go_on(out, folder_of(second, tmp_path / "second"), out=tmp_path / "further")

    client = serve()
    info = client.post("/v1/streams", json=stream).json()
    assert (info["warmup"], info["warmed_up"], info["method"]) == (48, False, "scout")
    send(client, first[:40])
    learned(client, 32)
    assert not client.get(URL).json()["warmed_up"], "the buffer of 40 is not full"
    client.__exit__(None, None, None)

    client = serve()  # started again while the buffer fills
    send(client, first[40:])
    client.post(f"{URL}/finish")
    wait_for(lambda: client.get(URL).json()["finished"] == 75)
    assert categories_by_id(client) == answers(out)
    client.__exit__(None, None, None)

    client = serve()  # and behind it, on the new encoder
    send(client, second)
    client.post(f"{URL}/finish")
    wait_for(lambda: client.get(URL).json()["finished"] == 130)
    together = categories_by_id(client)
    assert {name: together[name] for name, _ in second} == answers(further.out)


def test_options_of_the_realignment_that_cannot_be_used_are_refused(serve):
    client = serve()
    for wrong in ({"epochs": -1}, {"depth": 1}, "perhaps", {"optimiser": "lion"}):
        answer = client.post("/v1/streams", json={**SCOUT, "realign": wrong})
        assert answer.status_code == 422, wrong
    answer = client.post("/v1/streams", json={**STREAM, "realign": True})
    assert answer.status_code == 422 and "trains the encoder itself" in answer.json()["error"]
