"""``discover(engine="ray")``: the files of the local engine, through the front door."""

from __future__ import annotations

import io
import sys
import tarfile

import numpy as np
import pyarrow.parquet as pq
import pytest

from faults.world import SAME_BYTES, icons
from tests.engines.worlds import anchors, embeddings
from ttgcd.cli import main
from ttgcd.discovery import discover
from ttgcd.discovery.each import discover_each
from ttgcd.discovery.engine import Engine
from ttgcd.errors import InputError

KNOWN = "cat,dog,car,tree,house,fish,bird,boat"
OPTIONS = {
    "known": KNOWN,
    "novel": 4,
    "model": "mini",
    "vocabulary": "none",
    "batch_size": 32,
    "preset": "paper",
}
CHANGES = {"warmup": 96, "epochs": 2}


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=200 * 2**20,
        include_dashboard=False,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


def tar_of(path, pictures):
    with tarfile.open(path, "w") as archive:
        for number, data in enumerate(pictures):
            info = tarfile.TarInfo(f"{number:04d}.png")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def files(out):
    return {name: (out / name).read_bytes() for name in SAME_BYTES}


def test_two_tar_streams_share_a_pool_and_each_leaves_the_local_files(tmp_path, cluster):
    pictures = icons(500)
    pictures[40] = pictures[40][:100]  # damaged
    sources = {
        "north": tar_of(tmp_path / "a.tar", pictures[:300]),
        "south": tar_of(tmp_path / "b.tar", pictures[300:]),
    }
    for name, source in sources.items():
        discover(source, out=tmp_path / "local" / name, changes=CHANGES, **OPTIONS)
    found = discover_each(sources, out=tmp_path / "ray", workers=2, changes=CHANGES, **OPTIONS)
    assert found["north"].rejected == 1
    for name in sources:
        assert files(tmp_path / "ray" / name) == files(tmp_path / "local" / name)


def test_the_command_in_throughput_mode_answers_every_sample(tmp_path, cluster, monkeypatch):
    np.save(tmp_path / "rows.npy", embeddings(4000))
    np.save(tmp_path / "anchors.npy", anchors())
    command = [
        *("discover", str(tmp_path / "rows.npy"), "--anchors", str(tmp_path / "anchors.npy")),
        *("--known", "a,b,c,d", "--novel", "2", "--warmup", "256", "--batch-size", "64"),
        *("--preset", "paper", "--out", str(tmp_path / "exact"), "--quiet"),
    ]
    monkeypatch.setattr(sys, "argv", ["ttgcd", *command])
    assert main(command) == 0
    scale = ("--engine", "ray", "--workers", "2", "--sync-every", "4")
    assert main([*command, *scale, "--out", str(tmp_path / "rounds")]) == 0
    exact, rounds = (
        pq.read_table(tmp_path / name / "assignments.parquet") for name in ("exact", "rounds")
    )
    assert rounds.column("id").equals(exact.column("id"))
    same = np.array(rounds.column("category")) == np.array(exact.column("category"))
    assert same.mean() > 0.95
    with pytest.raises(InputError, match=r"other settings.*sync_every"):
        discover(
            tmp_path / "rows.npy",
            anchors=str(tmp_path / "anchors.npy"),
            known="a,b,c,d",
            novel=2,
            preset="paper",
            changes={"warmup": 256},
            batch_size=64,
            out=tmp_path / "rounds",
            resume=True,
        )


def test_options_of_the_pool_need_the_ray_engine():
    with pytest.raises(InputError, match="workers goes with `engine=ray`"):
        Engine(workers=2)
    with pytest.raises(InputError, match="engine must be local or ray"):
        Engine("spark")  # type: ignore[arg-type]


def test_without_ray_the_option_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'ttgcd\[ray\]'"):
        Engine("ray")
