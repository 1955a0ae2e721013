"""The Ray engine through the front door: addresses, data sets of Ray, a driver that dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from faults.world import KNOWN, SAME_BYTES, icons
from ttgcd.discovery import discover

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")

OPTIONS = {
    "known": ",".join(KNOWN),
    "novel": 4,
    "model": "mini",
    "vocabulary": "none",
    "batch_size": 32,
    "changes": {"warmup": 96, "restarts": 1, "fresh_restarts": 1, "words": 0},
}


@pytest.fixture(scope="module")
def cluster():
    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=200 * 2**20,
        include_dashboard=False,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    pictures = icons(300)
    pictures[40] = pictures[40][:100]  # damaged
    for number, data in enumerate(pictures):
        (folder / f"{number:04d}.png").write_bytes(data)
    return folder


def files(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in SAME_BYTES}


def test_workers_read_from_an_address(tmp_path, cluster, photos):
    address = f"local://{photos}"  # fsspec's own, in the place of a bucket
    discover(address, out=tmp_path / "local", **OPTIONS)
    # The default method answers from a fit: throughput mode takes nothing from it.
    discover(address, out=tmp_path / "ray", engine="ray", workers=2, sync_every=4, **OPTIONS)
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    discover(photos, out=tmp_path / "folder", **OPTIONS)
    for name in ("assignments.parquet", "rejected.csv", "categories.json"):
        here, there = ((tmp_path / run / name).read_bytes() for run in ("folder", "local"))
        assert here == there


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_data_set_of_ray_is_a_source(tmp_path, cluster, photos, engine):
    import ray.data

    dataset = ray.data.read_binary_files(str(photos), include_paths=True)
    workers = 2 if engine == "ray" else None
    found = discover(dataset, out=tmp_path / "set", engine=engine, workers=workers, **OPTIONS)
    assert found.rejected == 1
    paths = sorted(str(path) for path in photos.iterdir())
    discover(paths, out=tmp_path / "paths", **OPTIONS)
    for name in ("assignments.parquet", "categories.json"):
        assert (tmp_path / "set" / name).read_bytes() == (tmp_path / "paths" / name).read_bytes()
    back = ray.data.read_parquet(str(tmp_path / "set" / "assignments.parquet"))
    assert back.count() == 299


def test_pixels_of_a_data_set_of_ray(tmp_path, cluster, photos):
    import ray.data

    (tmp_path / "few").mkdir()
    for path in sorted(photos.iterdir())[:40]:
        (tmp_path / "few" / path.name).write_bytes(path.read_bytes())
    dataset = ray.data.read_images(str(tmp_path / "few"), mode="RGB", include_paths=True)
    found = discover(dataset, out=tmp_path / "set", engine="ray", workers=1, **OPTIONS)
    table = pq.read_table(found.out / "assignments.parquet")
    assert sorted(Path(name).name for name in table.column("id").to_pylist()) == [
        f"{number:04d}.png" for number in range(40)
    ]


def test_a_driver_that_is_killed_goes_on_with_resume(tmp_path, photos):
    command = [
        *(sys.executable, "-m", "ttgcd", "discover", str(photos), "--known", ",".join(KNOWN)),
        *("--novel", "4", "--model", "mini", "--vocabulary", "none", "--batch-size", "8"),
        *("--preset", "paper", "--warmup", "32", "--epochs", "2", "--threads", "1", "--quiet"),
    ]
    subprocess.run([*command, "--out", str(tmp_path / "local")], check=True)
    ray_engine = [*command, "--engine", "ray", "--workers", "2", "--out", str(tmp_path / "ray")]
    driver = subprocess.Popen(ray_engine)
    begun = time.monotonic()
    checkpoints = tmp_path / "ray" / ".progress"
    # The end of the warm-up is kept in a checkpoint; the rest of the stream is still to come.
    while not list(checkpoints.glob("checkpoint-*")) and driver.poll() is None:
        assert time.monotonic() - begun < 200
        time.sleep(0.005)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert not (tmp_path / "ray" / "assignments.parquet").exists()
    subprocess.run([*ray_engine, "--resume"], check=True)
    assert files(tmp_path / "ray") == files(tmp_path / "local")


def test_without_names_workers_leave_the_local_files(tmp_path, cluster, photos):
    options = {**OPTIONS, "known": None}
    discover(photos, out=tmp_path / "local", **options)
    found = discover(photos, out=tmp_path / "ray", engine="ray", workers=2, **options)
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    assert [c.name for c in found.categories if c.count] == [f"group {n}" for n in range(1, 5)]
