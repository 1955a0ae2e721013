"""A light load generator: HTTP/1.1 over kept connections, bodies made beforehand.

Server and clients share the machine in ``benchmarks/serving.py``; what the clients cost is taken
from the server. This one costs a tenth of a millisecond a request.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

BOUNDARY = b"images-of-a-benchmark"
Images = Sequence[tuple[str, bytes]]


@dataclass
class Told:
    """What a load was answered: ids and seconds of every request, and how often it was told to
    come back later."""

    ids: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    busy: int = 0


def form(images: Images) -> bytes:
    """A multipart body."""
    parts = [
        b'--%b\r\nContent-Disposition: form-data; name="images"; filename="%b"\r\n\r\n%b\r\n'
        % (BOUNDARY, name.encode(), data)
        for name, data in images
    ]
    return b"".join(parts) + b"--" + BOUNDARY + b"--\r\n"


def requests(stream: str, images: Images, at_once: int, wait: bool = True) -> list[bytes]:
    """Whole requests, heads and bodies."""
    path = f"/v1/streams/{stream}/images" + ("" if wait else "?wait=false")
    made = []
    for start in range(0, len(images), at_once):
        body = form(images[start : start + at_once])
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
            f"Content-Type: multipart/form-data; boundary={BOUNDARY.decode()}\r\n\r\n"
        )
        made.append(head.encode() + body)
    return made


async def closed_loop(port: int, made: Sequence[bytes], clients: int) -> Told:
    """So many clients, each with its next request as soon as the last is answered."""
    told, rest = Told(), iter(made)

    async def client() -> None:
        line = await _Line.open(port)
        for request in rest:
            began = time.perf_counter()
            await line.send(request, told)
            told.seconds.append(time.perf_counter() - began)
        line.close()

    await asyncio.gather(*[client() for _ in range(clients)])
    return told


async def open_loop(port: int, made: Sequence[bytes], rate: float, clients: int = 64) -> Told:
    """``rate`` requests a second, whether the earlier ones are answered or not; the time of each
    counts from when it was due."""
    told = Told()
    free: asyncio.Queue[_Line] = asyncio.Queue()
    for _ in range(clients):
        free.put_nowait(await _Line.open(port))

    async def one(request: bytes, due: float) -> None:
        line = await free.get()
        await line.send(request, told)
        told.seconds.append(time.perf_counter() - due)
        free.put_nowait(line)

    begin, tasks = time.perf_counter() + 0.1, []
    for number, request in enumerate(made):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(request, due)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait().close()
    return told


class _Line:
    """One connection that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> _Line:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def close(self) -> None:
        self._writer.close()

    async def send(self, request: bytes, told: Told) -> None:
        """Until it is taken: 429 is waited out."""
        while True:
            self._writer.write(request)
            status, record, pause = await self._answer()
            if status == 200:
                told.ids += [result["id"] for result in record["results"]]
                return
            if status != 429:
                raise SystemExit(f"status {status}: {record}")
            told.busy += 1
            await asyncio.sleep(pause)

    async def _answer(self) -> tuple[int, Any, float]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        lines = [line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line]
        fields = dict((key, value) for key, value in lines)
        body = await self._reader.readexactly(int(fields["content-length"]))
        return int(head.split(" ", 2)[1]), json.loads(body), float(fields.get("retry-after", 1))
