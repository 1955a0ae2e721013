"""Kill a service with SIGKILL under load, again and again: nothing acknowledged may be lost.

Clients send images, each under its own id, and repeat what was not acknowledged. After the last
cycle every acknowledged id must be there once, under the index it was acknowledged with, and the
answers must be those of one undisturbed session over the same order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx

from tests.service.live_server import LiveServer

BATCH, WARMUP = 32, 96


@dataclass
class ServiceKills:
    """What the kills have done."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    moved: int = 0
    different: int = 0
    compared: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return self.lost + self.moved + self.different

    def lines(self) -> Iterator[str]:
        yield (
            f"service: {self.kills} SIGKILLs under load, {self.acknowledged} images acknowledged: "
            f"{self.lost} lost, {self.moved} doubled or moved, {self.different} of "
            f"{self.compared} learned answers differ from an undisturbed run"
        )
        yield from self.examples[:10]


def campaign(
    images: Sequence[tuple[str, bytes]],
    known: Sequence[str],
    kills: int,
    work: Path,
    seed: int = 0,
    tell: Callable[[str], None] = print,
) -> ServiceKills:
    """``images`` are ids and bytes; they are sent in random pieces by two clients."""
    result, draw = ServiceKills(), random.Random(seed)
    server = LiveServer(work / "state")
    stream: dict[str, Any] = {
        "name": "load",
        "known": list(known),
        "novel": 8,
        "preset": "paper",
        "warmup": WARMUP,
        "epochs": 1,
        "batch_size": BATCH,
        "vocabulary": ["thing", "tool"],
    }
    told: dict[str, int] = {}
    todo = list(images)
    server.start().ready()
    httpx.post(f"{server.url}/v1/streams", json=stream, timeout=60).raise_for_status()
    for cycle in range(kills):
        stop = Event()
        share = len(images) * (cycle + 1) // kills
        piece = [image for image in todo[:share] if image[0] not in told]
        clients = [
            Thread(target=_send, args=(server.url, piece[who::2], told, stop, draw.random()))
            for who in range(2)
        ]
        for client in clients:
            client.start()
        _wait_for_load(told)
        time.sleep(draw.uniform(0.0, 1.5))
        server.kill()
        stop.set()
        for client in clients:
            client.join()
        result.kills += 1
        server.start().ready()
        tell(f"service: kill {cycle + 1} of {kills}, {len(told)} acknowledged")
    left = [image for image in todo if image[0] not in told]
    _send(server.url, left, told, Event(), 0.5)
    _judge(server, told, stream, images, result, work)
    server.stop()
    return result


def _wait_for_load(told: dict[str, int], seconds: float = 60.0) -> None:
    """Until the service answers again: a kill before that would be one without load."""
    before, end = len(told), time.monotonic() + seconds
    while len(told) == before and time.monotonic() < end:
        time.sleep(0.01)


def _send(
    url: str, images: Sequence[tuple[str, bytes]], told: dict[str, int], stop: Event, seed: float
) -> None:
    draw, at = random.Random(seed), 0
    while at < len(images) and not stop.is_set():
        group = images[at : at + draw.randint(1, 9)]
        files = [("images", (name, data, "image/png")) for name, data in group]
        try:
            answer = httpx.post(f"{url}/v1/streams/load/images", files=files, timeout=30)
        except httpx.TransportError:
            if stop.is_set():
                return
            time.sleep(0.05)
            continue
        if answer.status_code != 200:
            time.sleep(0.1)
            continue
        for record in answer.json()["results"]:
            told.setdefault(record["id"], record["index"])
        at += len(group)


def _judge(
    server: LiveServer,
    told: dict[str, int],
    stream: dict[str, Any],
    images: Sequence[tuple[str, bytes]],
    result: ServiceKills,
    work: Path,
) -> None:
    url = f"{server.url}/v1/streams/load"
    whole = len(told) - len(told) % BATCH
    end = time.monotonic() + 120
    while httpx.get(url, timeout=30).json()["learned"] < whole and time.monotonic() < end:
        time.sleep(0.2)
    rows: dict[int, dict[str, Any]] = {}
    for offset in range(0, len(told), 500):
        query = f"{url}/images?order=newest&limit=500&offset={offset}"
        for row in httpx.get(query, timeout=60).json()["images"]:
            rows[row["index"]] = row
    by_id = {row["id"]: index for index, row in rows.items()}
    result.acknowledged = len(told)
    result.lost = sum(name not in by_id for name in told)
    result.moved = sum(by_id.get(name, index) != index for name, index in told.items())
    result.moved += len(rows) - len(by_id)
    expected = _undisturbed([rows[i]["id"] for i in sorted(rows)], dict(images), stream, work)
    for index, category in enumerate(expected[:whole]):
        result.compared += 1
        if rows[index]["category"] != category:
            result.different += 1
            result.examples.append(f"image {index}: {rows[index]['category']} for {category}")


def _undisturbed(
    order: Sequence[str], data: dict[str, bytes], stream: dict[str, Any], work: Path
) -> list[int]:
    """The answers of a folder run over the same order."""
    import pyarrow.parquet as pq

    from ttgcd import discover

    folder = work / "folder"
    folder.mkdir()
    for number, name in enumerate(order):
        (folder / f"{number:06d}.png").write_bytes(data[name])
    changes = {"warmup": stream["warmup"], "epochs": stream["epochs"]}
    options = {key: stream[key] for key in ("known", "novel", "preset", "batch_size", "vocabulary")}
    run = discover(
        folder, out=work / "out", model="mini", changes=changes, shuffle=False, **options
    )
    return pq.read_table(run.out / "assignments.parquet").column("category").to_pylist()
