"""Images in, answers out: the same as a folder's, kept over restarts, changed by edits."""

from __future__ import annotations

import base64
import io
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.service.conftest import STREAM, learned, send, wait_for
from ttgcd.discovery import discover
from ttgcd.service.batcher import Batcher
from ttgcd.service.journal import Entry, Journal
from ttgcd.service.views import View, Views

URL = "/v1/streams/icons"


def categories_by_id(client) -> dict[str, int]:
    data = client.get(f"{URL}/download?format=parquet").content
    table = pq.read_table(io.BytesIO(data))
    return dict(zip(table.column("id").to_pylist(), table.column("category").to_pylist()))


def test_images_that_arrive_in_any_chopping_get_the_ids_of_a_folder_run(serve, icons, tmp_path):
    images = icons[:112]
    folder = tmp_path / "images"
    folder.mkdir()
    for number, (_, data) in enumerate(images):
        (folder / f"{number:04d}.png").write_bytes(data)
    options = {key: STREAM[key] for key in ("known", "novel", "batch_size", "preset", "vocabulary")}
    changes = {"warmup": STREAM["warmup"], "epochs": STREAM["epochs"]}
    run = discover(
        folder, out=tmp_path / "out", model="mini", changes=changes, shuffle=False, **options
    )
    table = pq.read_table(run.out / "assignments.parquet")
    expected = dict(zip(table.column("id").to_pylist(), table.column("category").to_pylist()))

    client = serve()
    assert client.post("/v1/streams", json=STREAM).status_code == 201
    cuts = [0, 1, 2, 5, 40, 41, 77, 112]
    for begin, end in pairwise(cuts):
        part = [(f"{n:04d}.png", images[n][1]) for n in range(begin, end)]
        answer = send(client, part)
        assert answer.status_code == 200
        assert all(result["answer"]["name"] for result in answer.json()["results"])
    learned(client, 112)
    assert categories_by_id(client) == expected


def test_a_restart_keeps_every_image_answer_and_edit(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, icons[:100])
    learned(client, 96)
    novel = next(
        c for c in client.get(f"{URL}/categories").json()["categories"] if c["kind"] == "novel"
    )
    renamed = client.patch(f"{URL}/categories/{novel['id']}", json={"name": "gadget"})
    assert renamed.status_code == 200
    before = categories_by_id(client)
    client.__exit__(None, None, None)

    client = serve()
    learned(client, 96)
    wait_for(lambda: len(categories_by_id(client)) == 100)
    after = categories_by_id(client)
    settled = [name for name, _ in icons[:96]]  # the last four are predictions: no whole batch
    assert [after[name] for name in settled] == [before[name] for name in settled]
    names = {c["id"]: c["name"] for c in client.get(f"{URL}/categories").json()["categories"]}
    assert names[novel["id"]] == "gadget"
    assert len(before) == 100


def test_in_the_warm_up_of_the_default_method_whole_batches_are_answered_by_prediction(
    serve, icons
):
    client = serve()
    said = {key: value for key, value in STREAM.items() if key not in ("preset", "epochs")}
    client.post("/v1/streams", json={**said, "warmup": 96})
    for results in (send(client, icons[:32]), send(client, icons[32:64])):
        answers = [result["answer"] for result in results.json()["results"]]
        assert all(answer["name"] and answer["provisional"] for answer in answers)
    learned(client, 64)
    assert not client.get(URL).json()["warmed_up"]
    quiet = [("images", (name, data, "image/png")) for name, data in icons[64:80]]
    client.post(f"{URL}/images?wait=false", files=quiet)
    wait_for(lambda: client.get(f"{URL}/images?limit=1").json()["total"] == 80)
    send(client, icons[80:96])
    wait_for(lambda: client.get(URL).json()["warmed_up"])


def test_the_same_id_again_is_the_same_image_and_another_image_under_it_is_refused(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    first = send(client, icons[:1]).json()["results"][0]
    again = send(client, icons[:1]).json()["results"][0]
    assert again["duplicate"] and again["index"] == first["index"] == 0
    assert send(client, [(icons[0][0], icons[1][1])]).status_code == 409
    assert client.get(URL).json()["images"] == 1


def test_raw_bytes_and_data_uris_are_taken_as_well(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    raw = client.post(
        f"{URL}/images?id=raw", content=icons[0][1], headers={"content-type": "image/png"}
    )
    assert raw.json()["results"][0]["id"] == "raw"
    uri = "data:image/png;base64," + base64.b64encode(icons[1][1]).decode()
    sent = client.post(f"{URL}/images", json={"images": [{"id": "uri", "data": uri}]})
    assert sent.json()["results"][0]["answer"]["provisional"]


def test_one_bad_image_among_good_ones_is_refused_alone(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    results = send(client, [icons[0], ("bad", b"no image"), icons[1]]).json()["results"]
    assert [result["error_type"] for result in results] == [None, "unsupported_media_type", None]
    assert send(client, [("bad", b"no image")]).status_code == 415
    assert send(client, [("empty", b"")]).status_code == 422


def test_the_end_of_the_warm_up_is_seen_by_cursor_and_by_events(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, icons[:47])
    cursor = client.get(f"{URL}/changes?limit=1000").json()["cursor"]
    assert client.get(f"{URL}/changes?after={cursor}").json()["changes"] == []
    send(client, icons[47:48])
    learned(client, 48)
    changed = client.get(f"{URL}/changes?after={cursor}").json()
    assert {row["index"] for row in changed["changes"]} == set(range(48))
    assert not any(row["provisional"] for row in changed["changes"])
    stream = client.app.state.house.stream("icons")
    kinds = {event.kind for event in stream.events.after(stream.events._first)}
    assert {"answered", "progress", "born"} <= kinds


def test_edits_over_http_change_what_everybody_sees_and_can_be_undone(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, icons[:96])
    learned(client, 96)
    found = client.get(f"{URL}/categories").json()["categories"]
    one, other = [c for c in found if c["kind"] == "novel" and c["count"]][:2]
    before = categories_by_id(client)

    merge = {"op": "merge", "category": other["id"], "into": one["id"]}
    assert client.post(f"{URL}/edits", json=merge).status_code == 201
    now = {c["id"]: c for c in client.get(f"{URL}/categories").json()["categories"]}
    assert now[other["id"]]["merged_into"] == one["id"] and now[other["id"]]["count"] == 0

    members = client.get(f"{URL}/images?category={one['id']}").json()
    assert members["total"] == now[one["id"]]["count"]
    picked = [members["images"][0]["index"]]
    split = {"op": "split", "category": one["id"], "images": picked, "name": "odd one"}
    assert client.post(f"{URL}/edits", json=split).status_code == 201
    row = client.get(f"{URL}/images/{picked[0]}").json()
    assert row["name"] == "odd one" and row["confidence"] == 1.0

    assert client.post(f"{URL}/edits", json={"op": "undo"}).status_code == 201
    undone = client.post(f"{URL}/edits", json={"op": "undo"}).json()["edits"]
    assert [edit["in_force"] for edit in undone] == [False] * 4
    assert categories_by_id(client) == before
    assert client.post(f"{URL}/edits", json={"op": "undo"}).status_code == 422
    assert client.patch(f"{URL}/categories/0", json={"name": "x"}).status_code == 422
    assert client.patch(f"{URL}/categories/9999", json={"name": "x"}).status_code == 404


def test_a_short_stream_is_seen_as_it_is_even_if_a_view_took_long(serve, icons, monkeypatch):
    quick = Views._make

    def slowly(views: Views) -> View:
        time.sleep(0.3)
        return quick(views)

    monkeypatch.setattr(Views, "_make", slowly)
    monkeypatch.setattr("ttgcd.service.views.SLOW_SECONDS", 0.1)
    client = serve()
    client.post("/v1/streams", json=STREAM)
    counts = []
    for begin in range(0, 48, 16):
        send(client, icons[begin : begin + 16])
        counts.append(sum(c["count"] for c in client.get(f"{URL}/categories").json()["categories"]))
    assert counts == [16, 32, 48]


def test_text_finds_images_and_embeddings_have_the_openai_shape(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, icons[:60])
    found = client.post(f"{URL}/search", json={"text": "cat", "limit": 5}).json()["results"]
    assert len(found) == 5
    assert found[0]["similarity"] >= found[-1]["similarity"]

    uri = "data:image/png;base64," + base64.b64encode(icons[0][1]).decode()
    plain = client.post("/v1/embeddings", json={"input": ["a cat", uri]}).json()
    packed = client.post(
        "/v1/embeddings", json={"input": ["a cat", uri], "encoding_format": "base64"}
    ).json()
    for one, other in zip(plain["data"], packed["data"]):
        row = np.frombuffer(base64.b64decode(other["embedding"]), "<f4")
        assert np.allclose(one["embedding"], row) and np.isclose(np.linalg.norm(row), 1, atol=1e-4)
    assert client.get("/v1/models").json()["data"][0]["id"] == "mini"


def test_pause_delete_and_the_number_of_streams(serve, icons):
    from ttgcd.service.limits import Limits

    client = serve(limits=Limits(streams=1))
    client.post("/v1/streams", json=STREAM)
    assert client.post("/v1/streams", json=STREAM).status_code == 409
    assert client.post("/v1/streams", json={**STREAM, "name": "two"}).status_code == 429
    assert client.patch(URL, json={"paused": True}).json()["paused"]
    assert send(client, icons[:1]).status_code == 409
    client.patch(URL, json={"paused": False})
    assert send(client, icons[:1]).status_code == 200
    assert client.delete(URL).status_code == 204
    assert client.get(URL).status_code == 404
    assert client.post("/v1/streams", json=STREAM).status_code == 201
    assert client.get(URL).json()["images"] == 0


def test_a_report_and_a_csv_can_be_downloaded(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, icons[:64])
    learned(client, 64)
    lines = client.get(f"{URL}/download").text.splitlines()
    assert len(lines) == 65 and lines[0].startswith('"id"')
    report = client.get(f"{URL}/download?format=report")
    assert report.text.lstrip().lower().startswith("<!doctype html>")
    assert "attachment" in report.headers["content-disposition"]


def test_files_that_appear_in_a_watched_folder_are_taken_once(serve, icons, tmp_path):
    from ttgcd.service.limits import Limits
    from ttgcd.service.watch import Watch

    client = serve()
    client.post("/v1/streams", json=STREAM)
    folder = tmp_path / "camera"
    folder.mkdir()
    watch = Watch(folder, client.app.state.house.stream("icons"), Limits(), every=0.05)
    for number, (_, data) in enumerate(icons[:5]):
        (folder / f"{number}.png").write_bytes(data)
    (folder / "broken.png").write_bytes(b"nothing")
    (folder / "notes.txt").write_text("no image")
    wait_for(lambda: client.get(URL).json()["images"] == 5 and "broken.png" in watch.refused)
    watch.stop()
    ids = {row["id"] for row in client.get(f"{URL}/images").json()["images"]}
    assert ids <= {f"{n}.png" for n in range(5)}


def test_a_torn_end_of_the_journal_is_cut_off_and_nothing_before_it(tmp_path: Path):
    journal = Journal(tmp_path / "journal")
    journal.submit([Entry(f"i{n}", bytes([n]) * 100) for n in range(10)])[1].result()
    journal.close()
    whole = (tmp_path / "journal").read_bytes()
    for cut in (1, 50, 99, 130):
        (tmp_path / "journal").write_bytes(whole[:-cut])
        torn = Journal(tmp_path / "journal")
        assert len(torn) == 9 and torn.read(8) == bytes([8]) * 100
        torn.submit([Entry("new", b"x" * 10)])[1].result()
        assert torn.read(9) == b"x" * 10
        torn.close()
    damaged = bytearray(whole)
    damaged[-20] ^= 1
    (tmp_path / "journal").write_bytes(bytes(damaged))
    torn = Journal(tmp_path / "journal")
    assert len(torn) == 9
    torn.close()


def test_who_waited_while_the_warm_up_filled_is_answered_by_its_end(serve, icons, monkeypatch):
    """Even if no prediction comes in between, as when the machine is busy."""
    monkeypatch.setattr(Batcher, "ask", lambda self, stream, index, hurry: None)
    client = serve()
    settings = {key: value for key, value in STREAM.items() if key not in ("preset", "epochs")}
    assert client.post("/v1/streams", json=settings).status_code == 201
    stream = client.app.state.house.stream("icons")
    entries = [Entry(name, data) for name, data in icons[:48]]
    waiting = [stream.receive(entries[begin : begin + 16])[0] for begin in (0, 16, 32)]
    for receipt in waiting:
        receipt.done.result(timeout=60)
