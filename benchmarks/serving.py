"""How fast the service is, as a ratio to ``discover`` on the same files and model, in one run.

    python -m benchmarks.serving [--images 4096] [--clients 8]

1. ``discover`` over a folder, then the same files through HTTP into a stream with the same settings
   (server, clients and encoder share the machine): images a second and the ratio, both from first
   image to last answer, both without loading the model.
2. Every acknowledged id is there once.
3. At half that rate, one image a request: p50 and p99 of the time until the answer.
4. 64 clients at once, one image a request: none refused but by 429, none lost.
5. The server's memory after each tenth of the images.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from tests.service.live_server import LiveServer
from ttgcd import AsyncClient, discover
from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift

Images = list[tuple[str, bytes]]
BATCH = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--clients", type=int, default=4, help="requests under way in part 1")
    parser.add_argument("--at-once", type=int, default=128, help="images a request in part 1")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        bench(Path(place), args.images - args.images % BATCH, args.clients, args.at_once)


def bench(work: Path, count: int, clients: int, at_once: int) -> None:
    images = _images(count)
    known = list(iconshift_classes()[0])
    # Few words: finding names is no part of what is measured.
    settings: dict[str, Any] = {
        "known": known,
        "novel": 40,
        "preset": "paper",
        "vocabulary": ["thing", "tool"],
    }
    settings["batch_size"] = BATCH
    method = {"warmup": min(512, count // 2), "epochs": 1}
    plain = _discovered(work, images, {**settings, "changes": method})
    print(f"discover: {plain:.0f} images/s ({count} images, model mini)", flush=True)

    server = LiveServer(work / "state", "--queue", "16384").start().ready()
    post = httpx.post(
        f"{server.url}/v1/streams", json={"name": "all", **settings, **method}, timeout=120
    )
    post.raise_for_status()
    memory: list[float] = []
    began = time.perf_counter()
    asyncio.run(_flood(server, images, clients, at_once, memory))
    while _learned(server, "all") < count:
        time.sleep(0.02)
    served = count / (time.perf_counter() - began)
    print(f"served:   {served:.0f} images/s, {served / plain:.2f} of discover", flush=True)
    ids = _ids(server, "all", count)
    assert sorted(ids) == sorted(name for name, _ in images), "an id is lost or doubled"
    print(f"ids:      {len(ids)} acknowledged, each there once")
    print(f"memory:   {' '.join(f'{mb:.0f}' for mb in memory)} MB after each tenth")

    half = served / 2
    times = asyncio.run(_paced(server, "all", images[: min(count, 1024)], half))
    times.sort()
    p99 = times[int(0.99 * len(times))]
    print(
        f"half load, one image a request at {half:.0f}/s: p50 "
        f"{1000 * statistics.median(times):.0f} ms, p99 {1000 * p99:.0f} ms"
    )
    busy, taken = asyncio.run(_crowd(server, "all", images[: min(count, 1024)], 64))
    print(f"64 clients: {taken} answered, {busy} asked to come back later")
    server.stop()


def _images(count: int) -> Images:
    """IconShift's images again and again, each under an id of its own."""
    source, _ = load_iconshift("all")
    step = 7919
    return [
        (f"{n:06d}.png", bytes(source.read(n * step % len(source))))  # type: ignore[arg-type]
        for n in range(count)
    ]


def _discovered(work: Path, images: Images, settings: dict[str, Any]) -> float:
    folder = work / "images"
    folder.mkdir()
    for name, data in images:
        (folder / name).write_bytes(data)
    discover(folder, out=work / "out", model="mini", shuffle=False, **settings)
    seconds = json.loads((work / "out" / "run.json").read_text())["seconds"]
    spent = sum(seconds[phase] for phase in ("input", "encode", "method", "sinks"))
    return len(images) / spent


async def _flood(
    server: LiveServer, images: Images, clients: int, at_once: int, memory: list[float]
) -> None:
    tenth, done = len(images) // 10, 0
    async with AsyncClient(server.url) as client:
        sent = client.send("all", images, at_once=at_once, concurrency=clients, wait=False)
        async for _ in sent:
            done += 1
            if done % tenth == 0:
                memory.append(_memory(server))


async def _paced(server: LiveServer, stream: str, images: Images, rate: float) -> list[float]:
    times: list[float] = []
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:

        async def one(name: str, data: bytes) -> None:
            began = time.perf_counter()
            await client.post(
                f"/v1/streams/{stream}/images?id=paced-{name}",
                content=data,
                headers={"content-type": "image/png"},
            )
            times.append(time.perf_counter() - began)

        tasks = []
        begin = time.perf_counter()
        for n, (name, data) in enumerate(images):
            await asyncio.sleep(max(0.0, begin + n / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(one(name, data)))
        await asyncio.gather(*tasks)
    return times


async def _crowd(server: LiveServer, stream: str, images: Images, clients: int) -> tuple[int, int]:
    busy = taken = 0
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:

        async def mine(part: Images) -> None:
            nonlocal busy, taken
            for name, data in part:
                while True:
                    answer = await client.post(
                        f"/v1/streams/{stream}/images?id=crowd-{name}",
                        content=data,
                        headers={"content-type": "image/png"},
                    )
                    if answer.status_code == 200:
                        taken += 1
                        break
                    assert answer.status_code == 429, answer.text
                    busy += 1
                    await asyncio.sleep(1)

        await asyncio.gather(*[mine(images[who::clients]) for who in range(clients)])
    return busy, taken


def _learned(server: LiveServer, stream: str) -> int:
    return int(httpx.get(f"{server.url}/v1/streams/{stream}", timeout=60).json()["learned"])


def _ids(server: LiveServer, stream: str, count: int) -> list[str]:
    found: list[str] = []
    for offset in range(0, count, 500):
        url = f"{server.url}/v1/streams/{stream}/images?limit=500&offset={offset}"
        found += [row["id"] for row in httpx.get(url, timeout=60).json()["images"]]
    return found


def _memory(server: LiveServer) -> float:
    """Resident megabytes of the server's process."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    main()
