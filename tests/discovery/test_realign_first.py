"""``--realign`` through the front door, with the embedded model."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

import ttgcd
from faults.world import icons
from ttgcd.cli import main
from ttgcd.discovery import discover
from ttgcd.errors import InputError

KNOWN = "cat,dog,car,tree,house,fish,bird,boat"
OPTIONS = {"known": KNOWN, "novel": 4, "model": "mini", "vocabulary": "none", "batch_size": 32}
STAGE = {"warmup": 80, "epochs": 3, "lr": 0.02, "realign_batch_size": 32, "optimiser": "adam"}
FLAGS = (
    *("--realign", "--warmup", "80", "--epochs", "3", "--lr", "0.02", "--optimiser", "adam"),
    *("--realign-batch-size", "32"),
)
SAME = ("assignments.parquet", "categories.json", "state/state.safetensors", "state/state.json")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number, data in enumerate(icons(200)):
        (folder / f"{number:04d}.png").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def staged(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> ttgcd.Discovery:
    out = tmp_path_factory.mktemp("staged") / "out"
    return discover(photos, out=out, realign=STAGE, **OPTIONS)  # type: ignore[arg-type]


def command(photos: Path, out: Path, *more: str) -> list[str]:
    options = ("--known", KNOWN, "--novel", "4", "--model", "mini", "--vocabulary", "none")
    return [
        *("discover", str(photos), "--out", str(out), *options, "--batch-size", "32"),
        *("--quiet", *FLAGS, *more),
    ]


def files(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in SAME}


def test_the_command_leaves_what_python_leaves(photos, staged, tmp_path, capsys) -> None:
    assert main(command(photos, tmp_path / "out")) == 0
    assert files(tmp_path / "out") == files(staged.out)
    capsys.readouterr()
    assert main(command(photos, tmp_path / "out", "--print-config")) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert config["realign"] == {
        **STAGE, "normaliser": "buffer", "realign_depth": 0, "early_stop": 0.0
    }  # fmt: skip
    assert config["warmup"] == 1024, "the method's own warm-up is not the stage's"


def test_every_option_of_the_stage_arrives_and_set_is_the_methods(capsys) -> None:
    line = [
        *("discover", "nowhere", "--known", "cat", "--model", "mini", "--print-config"),
        *("--realign", "--warmup", "7", "--epochs", "5", "--lr", "0.5", "--optimiser", "momentum"),
        *("--realign-batch-size", "9", "--normaliser", "minibatch", "--realign-depth", "2"),
        *("--early-stop", "0.25", "--set", "warmup=300"),
    ]
    assert main(line) == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert config["warmup"] == 300
    assert config["realign"] == {
        "warmup": 7, "epochs": 5, "lr": 0.5, "optimiser": "momentum", "realign_batch_size": 9,
        "normaliser": "minibatch", "realign_depth": 2, "early_stop": 0.25,
    }  # fmt: skip


def test_the_encoder_was_realigned_and_the_record_says_so(photos, staged, tmp_path) -> None:
    plain = discover(photos, out=tmp_path / "plain", **OPTIONS)
    norms = [key for key in load_file(staged.out / "state/state.safetensors") if "/norm/" in key]
    assert norms
    record = json.loads((staged.out / "run.json").read_text())
    assert len(record["health"]["realign_losses"]) == 3
    assert record["settings"]["method"] == "scout"
    features = [np.load(run.out / "state/features.npy") for run in (staged, plain)]
    assert features[0].shape == features[1].shape
    assert not np.array_equal(*features), "the table's features are those of the new encoder"
    assert "realign" not in json.loads((plain.out / "run.json").read_text())["settings"]["config"]
    assert "Re-alignment" in (staged.out / "report.html").read_text()


def test_a_killed_run_goes_on_behind_its_last_epoch(photos, staged, tmp_path) -> None:
    out = tmp_path / "out"
    script = (
        "import os, signal, sys\n"
        "from ttgcd.methods.stage_one import StageOne\n"
        "run = StageOne.run\n"
        "def dying(self, task, caller, images, labels, margins, after_epoch, instead):\n"
        "    def after():\n"
        "        after_epoch()\n"
        "        if len(self.losses) == 2:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "    run(self, task, caller, images, labels, margins, after, instead)\n"
        "StageOne.run = dying\n"
        "from ttgcd.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    line = command(photos, out)
    killed = subprocess.run([sys.executable, "-c", script, *line], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    said = subprocess.run(
        [sys.executable, "-m", "ttgcd", *[w for w in line if w != "--quiet"], "--resume"],
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    assert re.findall(r"re-align: (\d)/3", said.stderr) == ["3"], "two epochs were there"
    assert files(out) == files(staged.out)


def test_a_finished_run_predicts_and_goes_on_with_its_encoder(photos, staged, tmp_path) -> None:
    loaded = ttgcd.load(staged.out)
    inside = pq.read_table(staged.out / "assignments.parquet").to_pylist()
    again = {row["id"]: row["category"] for row in loaded.predict(photos).to_pylist()}
    assert np.mean([again[row["id"]] == row["category"] for row in inside]) > 0.95
    more = tmp_path / "more"
    line = ["discover", str(photos), "--from", str(staged.out), "--out", str(more), "--quiet"]
    assert main(line) == 0
    states = [load_file(out / "state/state.safetensors") for out in (staged.out, more)]
    norms = [key for key in states[0] if "/norm/" in key]
    assert norms and all(np.array_equal(states[0][key], states[1][key]) for key in norms)


def test_what_the_run_was_made_with_cannot_be_given_again(photos, staged, tmp_path, capsys) -> None:
    line = ["discover", str(photos), "--from", str(staged.out), "--out", str(tmp_path / "x")]
    assert main([*line, "--realign"]) == 2
    assert "--realign" in capsys.readouterr().err


def test_a_run_with_the_stage_is_not_one_without(photos, staged) -> None:
    with pytest.raises(InputError, match="settings"):
        discover(photos, out=staged.out, resume=True, **OPTIONS)  # type: ignore[arg-type]


def test_a_source_of_embeddings_says_what_where_and_how(tmp_path, capsys) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "anchors.npy", rows[:2])
    line = [
        *("discover", str(tmp_path / "rows.npy"), "--anchors", str(tmp_path / "anchors.npy")),
        *("--known", "cat,dog", "--realign", "--out", str(tmp_path / "out"), "--quiet"),
    ]
    assert main(line) == 2
    said = capsys.readouterr().err
    assert "embeddings" in said and "no encoder" in said and "Leave out --realign" in said
    assert not (tmp_path / "out").exists()


def test_without_names_there_is_nothing_to_learn_from(photos, tmp_path, capsys) -> None:
    line = ["discover", str(photos), "--model", "mini", "--out", str(tmp_path / "out"), "--realign"]
    assert main(line) == 2
    said = capsys.readouterr().err
    assert "known names" in said and "leave out --realign" in said
    assert not (tmp_path / "out").exists()


def test_the_estimator_has_no_encoder_either() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 8))
    with pytest.raises(InputError, match="no encoder to re-align"):
        ttgcd.CategoryDiscovery(rows[:2], options={"realign": True}).fit(rows)


@pytest.mark.parametrize("preset", ["paper", "robust"])
def test_a_preset_that_realigns_itself_refuses_it(preset, photos, tmp_path, capsys) -> None:
    assert main(command(photos, tmp_path / "out", "--preset", preset)) == 2
    said = capsys.readouterr().err
    assert "pact trains the encoder itself" in said and "leave out --realign" in said
    assert not (tmp_path / "out").exists()


def test_workers_on_ray_leave_the_same_files(photos, staged, tmp_path) -> None:
    ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
    try:
        discover(photos, out=tmp_path / "ray", realign=STAGE, engine="ray", workers=2, **OPTIONS)  # type: ignore[arg-type]
    finally:
        ray.shutdown()
    assert files(tmp_path / "ray") == files(staged.out)
