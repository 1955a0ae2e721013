"""A stream without names: everything is grouped, groups get names, a restart keeps them."""

from __future__ import annotations

import json

import pytest

from tests.service.conftest import learned, send, wait_for
from tests.service.live_server import LiveServer
from ttgcd.cli import main
from ttgcd.discovery.run import go_on
from ttgcd.service.client import Client

URL = "/v1/streams/pile"
PILE = {"name": "pile", "novel": 8, "warmup": 48, "batch_size": 16}


def test_a_stream_without_names_groups_and_its_groups_get_names(serve, icons, tmp_path):
    client = serve()
    made = client.post("/v1/streams", json=PILE)
    assert made.status_code == 201 and made.json()["known"] == 0
    early = send(client, icons[:8], "pile").json()["results"]
    assert {result["answer"]["name"] for result in early} == {"group 1"}  # the one that there is
    assert all(result["answer"]["provisional"] for result in early)
    send(client, icons[8:112], "pile")
    learned(client, 112, "pile")
    found = client.get(f"{URL}/categories").json()["categories"]
    assert [c["name"] for c in found] == [f"group {n}" for n in range(1, 9)]
    assert sum(c["count"] for c in found) == 112
    stats = client.get(f"{URL}/stats").json()
    assert (stats["known"], stats["novel"]) == (0, 112)
    rows = client.get(f"{URL}/images?limit=112").json()["images"]
    assert all(0 <= row["confidence"] <= 1 for row in rows)
    wait_for(lambda: any(c["suggested_names"] for c in named_ones(client)))
    assert client.patch(f"{URL}/categories/2", json={"name": "gadget"}).status_code == 200
    client.post(f"{URL}/finish")
    client.__exit__(None, None, None)

    client = serve()
    learned(client, 112, "pile")
    assert {c["id"]: c["name"] for c in named_ones(client)}[2] == "gadget"
    report = client.get(f"{URL}/download?format=report").text
    assert '"groups":true' in report and "New categories" not in report
    # The folder of the stream is a finished run: what got a name is known to what goes on from it.
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number, (_, data) in enumerate(icons[112:160]):
        (pictures / f"{number:03d}.png").write_bytes(data)
    more = go_on(tmp_path / "state" / "pile" / "run", pictures, out=tmp_path / "more")
    assert {c.id: (c.kind, c.name) for c in more.categories}[2] == ("known", "gadget")


def named_ones(client) -> list[dict]:
    return client.get(f"{URL}/categories").json()["categories"]


@pytest.mark.parametrize(
    ("given", "said"),
    [({"preset": "paper"}, "'paper' needs known names"), ({"novel": 0}, "nothing to sort into")],
)
def test_what_cannot_be_without_names_is_refused(serve, given, said):
    client = serve()
    answer = client.post("/v1/streams", json={**PILE, **given})
    assert answer.status_code == 422 and said in answer.json()["error"]
    assert client.get("/v1/streams").json()["streams"] == []


def test_the_command_creates_a_nameless_stream_and_watches_without_names(icons, tmp_path, capsys):
    folder = tmp_path / "drop"
    folder.mkdir()
    for number, (_, data) in enumerate(icons[:20]):
        (folder / f"{number:03d}.png").write_bytes(data)
    server = LiveServer(tmp_path / "state", "--watch", str(folder)).start().ready()
    try:
        client = Client(server.url)
        wait_for(lambda: [s.images for s in client.streams() if s.name == "watched"] == [20])
        assert client.stream("watched").known == 0
        send_it = ["send", str(folder), server.url, "--stream", "sent"]
        assert main([*send_it, "--create"]) == 0
        assert {line.split("\t")[2] for line in capsys.readouterr().out.splitlines()} == {"group 1"}
        assert main(send_it) == 0  # it is there by now
    finally:
        server.stop()
    record = json.loads((tmp_path / "state" / "sent" / "stream.json").read_text())
    assert record["known"] == []
