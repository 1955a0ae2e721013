"""A service on the embedded model, in this process, and images to send to it."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")

from fastapi.testclient import TestClient

from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift
from ttgcd.service.app import ServiceSettings, make_app

KNOWN = list(iconshift_classes()[0])
#: Small enough for a warm-up of a second.
STREAM: dict[str, Any] = {
    "name": "icons",
    "known": KNOWN,
    "novel": 12,
    "preset": "paper",
    "vocabulary": ["bird", "phone", "train", "house", "tool", "fruit"],
    "warmup": 48,
    "epochs": 1,
    "batch_size": 16,
}


@pytest.fixture(scope="session")
def icons() -> list[tuple[str, bytes]]:
    """Ids and PNG bytes, in an order that mixes the classes."""
    source, _ = load_iconshift("line")
    step = 37
    places = [(i * step) % len(source) for i in range(200)]
    return [(source.id(place), bytes(source.read(place))) for place in places]  # type: ignore[arg-type]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    """Start a service; called again after ``stop`` it finds the state of before."""
    running: list[TestClient] = []

    def start(**settings: Any) -> TestClient:
        app = make_app(ServiceSettings(**{"state": tmp_path / "state", **settings}))
        client = TestClient(app, headers={"host": "127.0.0.1"})
        client.__enter__()
        running.append(client)
        wait_for(lambda: client.get("/ready").status_code == 200)
        return client

    yield start
    for client in running:
        client.__exit__(None, None, None)


def wait_for(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def send(client: TestClient, images: list[tuple[str, bytes]], stream: str = "icons") -> Any:
    files = [("images", (name, io.BytesIO(data), "image/png")) for name, data in images]
    return client.post(f"/v1/streams/{stream}/images", files=files)


def learned(client: TestClient, count: int, stream: str = "icons") -> None:
    """Wait until the session has seen so many images."""

    def there() -> bool:
        info = client.get(f"/v1/streams/{stream}").json()
        assert info["failed"] is None, info["failed"]
        return info["learned"] >= count

    wait_for(there)
