"""Tiny copies of all five benchmarks in their official layouts through the whole harness."""

from __future__ import annotations

import pytest

from tests.bench.conftest import EVALUATION
from tests.datasets import tiny
from ttgcd.bench.results import read_results
from ttgcd.cli import main


def build(name, root):
    kinds = EVALUATION
    if name == "cifar10-c":
        tiny.cifar_c(root, kinds, images=30)
    elif name == "cifar100-c":
        tiny.cifar_c(root, kinds, images=200, n_classes=100)
    elif name == "imagenet-c":
        tiny.imagenet_c(root, ["fog"])
    elif name == "cub-c":
        tiny.cub_c(root, ["fog", "frost"])
    else:
        tiny.domainnet(root, domains=["clipart", "sketch"])


@pytest.mark.parametrize(
    ("name", "experiment", "streams", "known"),
    [
        ("cifar10-c", "main", "fog,snow", 5),
        ("cifar100-c", "main", "fog", 50),
        ("imagenet-c", "main", "fog", 500),
        ("cub-c", "cub", "fog,frost", 100),
        ("domainnet", "domainnet", "clipart,sketch", 172),
    ],
)
def test_from_files_to_a_table(name, experiment, streams, known, model, tmp_path, capsys):
    build(name, tmp_path / "data")
    command = ["bench", "run", experiment, "--data", str(tmp_path / "data"), "--model", model]
    command += ["--out", str(tmp_path), "--benchmarks", name, "--streams", streams]
    command += ["--methods", "PACT", "--seeds", "0", "--threads", "1"]
    assert main(command) == 0
    rows = read_results(tmp_path / f"{experiment}.jsonl").rows
    assert [row["stream"] for row in rows] == streams.split(",")
    assert all(row["known_classes"] == known and row["metrics"]["all"] > 0 for row in rows)
    assert "PACT" in capsys.readouterr().out
