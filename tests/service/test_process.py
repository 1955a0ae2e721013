"""A service as a process: killed, stopped, talked to by the client and by the command line."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from faults.serving import campaign
from tests.service.conftest import KNOWN, STREAM
from tests.service.live_server import LiveServer
from ttgcd.cli import main
from ttgcd.errors import InputError
from ttgcd.service.client import AsyncClient, Client, ServiceProblem


def test_kills_under_load_lose_and_double_nothing(icons, tmp_path):
    result = campaign(icons[:128], KNOWN, 2, tmp_path, tell=lambda line: None)
    assert result.bad == 0, list(result.lines())
    assert result.acknowledged == 128 and result.compared == 128


def test_the_client_sends_edits_searches_and_the_service_stops_when_asked(icons, tmp_path, capsys):
    server = LiveServer(tmp_path / "state").start().ready()
    with Client(server.url) as client:
        client.create("icons", **{key: STREAM[key] for key in STREAM if key != "name"})
        results = list(client.send("icons", icons[:70], at_once=32))
        assert [result.id for result in results] == [name for name, _ in icons[:70]]
        assert client.changes("icons").cursor > 0
        novel = next(c for c in client.categories("icons") if c.kind == "novel")
        assert client.edit("icons", "rename", category=novel.id, name="gadget")[0].in_force
        assert client.search("icons", "cat", 3)[0].similarity > 0
        with pytest.raises(ServiceProblem) as refused:
            client.create("icons", ["cat"])
        assert refused.value.status == 409

    async def sent() -> int:
        async with AsyncClient(server.url) as many:
            return len([r async for r in many.send("icons", icons[60:100], at_once=8)])

    # In a thread of its own: a browser test in this process may have left a loop running here.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asyncio.run, sent()).result() == 40

    folder = Path(tmp_path / "photos")
    folder.mkdir()
    for number, (_, data) in enumerate(icons[100:104]):
        (folder / f"{number}.png").write_bytes(data)
    command = ["send", str(folder), server.url, "--stream", "new", "--known", "cat,dog"]
    assert main(command) == 0
    assert main(command) == 0, "a second time nothing changes"
    assert "4 sent, 0 refused" in capsys.readouterr().err
    with Client(server.url) as client:
        assert {s.name: s.images for s in client.streams()} == {"icons": 100, "new": 4}
    assert server.stop() in (0, -signal.SIGTERM)
    with pytest.raises(InputError), Client(server.url, retries=0) as client:
        client.streams()
