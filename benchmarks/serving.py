"""How fast the service is, as a ratio to ``discover`` on the same files and model, in one run.

    python -m benchmarks.serving [--images 8192] [--rounds 3]
    python -m benchmarks.serving --memory 100000

1. ``discover`` over a folder and the same files through HTTP into a stream with the same settings,
   by turns: images a second from the first image to the last revision, both without loading the
   model. Server and clients share the machine.
2. Every acknowledged id is there once.
3. 64 clients at once, one image a request.
4. At half that rate, one image a request: p50 and p99 of the time until the answer.

``--memory N`` instead: N images through HTTP, and the server's memory after each tenth of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks.load import Images, Told, closed_loop, open_loop, requests
from tests.service.live_server import LiveServer
from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift

#: Few words: finding names is no part of what is measured.
SETTINGS: dict[str, Any] = {
    "known": list(iconshift_classes()[0]),
    "novel": 40,
    "vocabulary": ["thing", "tool"],
}
AT_ONCE, LINES, CROWD = 128, 6, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, metavar="N", help="N images, and nothing else")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        # The port answers to this machine only; the state is on the disk of the temporary folder.
        server = LiveServer(work / "state", "--most-streams", "64").start().ready()
        try:
            if args.memory:
                grow(server, args.memory)
            else:
                compare(server, work, _images(args.images), args.rounds)
        finally:
            server.stop()


def compare(server: LiveServer, work: Path, images: Images, rounds: int) -> None:
    folder = work / "images"
    folder.mkdir()
    for name, data in images:
        (folder / name).write_bytes(data)
    plain, served = [], []
    for turn in range(rounds):
        plain.append(len(images) / _discovered(folder, work / f"out{turn}"))
        told, seconds = _served(server, f"turn{turn}", images)
        served.append(len(images) / seconds)
        _once(server, f"turn{turn}", told, images)
    one, other = statistics.median(plain), statistics.median(served)
    print(f"images:     {len(images)} of IconShift, 32 x 32, model mini, {rounds} rounds")
    print(f"discover:   {one:.0f} images/s ({_spread(plain)})")
    print(f"HTTP:       {other:.0f} images/s ({_spread(served)}), {AT_ONCE} images a request")
    print(f"ratio:      {other / one:.2f} (medians)")
    print(f"ids:        {len(images)} acknowledged in each round, each there once")

    stream = _created(server, "crowd")
    few = [(f"c{name}", data) for name, data in images[:4096]]
    began = time.perf_counter()
    told = asyncio.run(closed_loop(server.port, requests(stream, few, 1), CROWD))
    rate = len(few) / (time.perf_counter() - began)
    _once(server, stream, told, few)
    print(
        f"{CROWD} clients: {rate:.0f} images/s, one image a request; {_times(told)}; "
        f"{len(told.ids)} acknowledged, each there once; {told.busy} told to come back later"
    )
    few = [(f"h{name}", data) for name, data in images[:2048]]
    told = asyncio.run(open_loop(server.port, requests(stream, few, 1), rate / 2))
    print(f"half load:  {rate / 2:.0f} images/s, one image a request; {_times(told)}")


def grow(server: LiveServer, count: int) -> None:
    """Memory over a long stream."""
    stream, tenth = _created(server, "long"), count // 10
    source = _images(min(count, 8192))
    before = _megabytes(server)
    print(f"memory: {before:.0f} MB before the first image", flush=True)
    for part in range(10):
        images = [
            (f"{n:07d}.png", source[n % len(source)][1])
            for n in range(part * tenth, (part + 1) * tenth)
        ]
        began = time.perf_counter()
        asyncio.run(closed_loop(server.port, requests(stream, images, AT_ONCE), LINES))
        rate = len(images) / (time.perf_counter() - began)
        print(
            f"memory: {_megabytes(server):.0f} MB after {(part + 1) * tenth} images "
            f"({rate:.0f} images/s)",
            flush=True,
        )
    print(f"images in the stream: {_info(server, stream)['images']}")


def _images(count: int) -> Images:
    """IconShift's images again and again, each under an id of its own."""
    source, _ = load_iconshift("all")
    step = 7919
    return [
        (f"{n:06d}.png", bytes(source.read(n * step % len(source))))  # type: ignore[arg-type]
        for n in range(count)
    ]


def _discovered(folder: Path, out: Path) -> float:
    """Seconds from the first image to the last revision, without names and report."""
    names = out.parent / "known.txt"
    names.write_text("\n".join(SETTINGS["known"]) + "\n", encoding="utf-8")
    words = out.parent / "words.txt"
    words.write_text("\n".join(SETTINGS["vocabulary"]) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "ttgcd", "discover", str(folder), "--out", str(out)]
    command += ["--model", "mini", "--in-order", "--quiet", "--known", f"@{names}"]
    command += ["--novel", str(SETTINGS["novel"]), "--vocabulary", f"@{words}"]
    # As the service does: threads that wait for each other do not spin.
    env = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)
    seconds = json.loads((out / "run.json").read_text())["seconds"]
    return float(sum(seconds[phase] for phase in ("input", "encode", "method", "sinks")))


def _created(server: LiveServer, name: str) -> str:
    said = {"name": name, **SETTINGS}
    httpx.post(f"{server.url}/v1/streams", json=said, timeout=120).raise_for_status()
    return name


def _served(server: LiveServer, name: str, images: Images) -> tuple[Told, float]:
    """Seconds from the first image to the last revision."""
    made = requests(_created(server, name), images, AT_ONCE)
    began = time.perf_counter()
    told = asyncio.run(closed_loop(server.port, made, LINES))
    done = httpx.post(f"{server.url}/v1/streams/{name}/finish", timeout=120).json()
    spent = time.perf_counter() - began
    assert done["finished"] == len(images), done
    return told, spent


def _once(server: LiveServer, stream: str, told: Told, images: Images) -> None:
    """Every id was acknowledged once and is there once, or the run ends here."""
    there: list[str] = []
    while len(there) < len(images):
        query = f"limit=500&offset={len(there)}"
        found = httpx.get(f"{server.url}/v1/streams/{stream}/images?{query}", timeout=60).json()
        if not found["images"]:
            break
        there += [row["id"] for row in found["images"]]
    wanted = sorted(name for name, _ in images)
    if sorted(told.ids) != wanted or sorted(there) != wanted:
        raise SystemExit(f"{stream}: an acknowledged id is lost or doubled")


def _info(server: LiveServer, stream: str) -> dict[str, Any]:
    return dict(httpx.get(f"{server.url}/v1/streams/{stream}", timeout=60).json())


def _times(told: Told) -> str:
    ordered = sorted(told.seconds)
    p99 = ordered[int(0.99 * (len(ordered) - 1))]
    return f"p50 {1000 * statistics.median(ordered):.0f} ms, p99 {1000 * p99:.0f} ms"


def _spread(rates: Sequence[float]) -> str:
    return " ".join(f"{rate:.0f}" for rate in rates)


def _megabytes(server: LiveServer) -> float:
    """Resident memory of the server's process."""
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    main()
