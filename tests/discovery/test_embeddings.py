"""`ttgcd discover` on precomputed embeddings: files, memory, and a state others can go on from."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from tests.methods.test_pact import unit, world
from ttgcd.cli import main
from ttgcd.discovery import discover
from ttgcd.errors import InputError


@pytest.fixture
def files(tmp_path):
    features, anchors, labels = world(n=600)
    np.save(tmp_path / "features.npy", features)
    np.save(tmp_path / "anchors.npy", anchors)
    (tmp_path / "names.txt").write_text("ant\nbee\ncat\ndog\n")
    names = ["ant", "bee", "cat", "dog", "new 4", "new 5", "new 6", "new 7"]
    rows = [f"{i},{names[label]}" for i, label in enumerate(labels)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    return tmp_path


def arguments(folder, *more: str) -> list[str]:
    return [
        "discover",
        str(folder / "features.npy"),
        "--anchors",
        str(folder / "anchors.npy"),
        "--known",
        f"@{folder / 'names.txt'}",
        "--novel",
        "4",
        "--warmup",
        "256",
        "--out",
        str(folder / "out"),
        "--in-order",
        "--preset",
        "paper",
        "--quiet",
        *more,
    ]


def test_leaves_every_file_and_prints_the_scores(files, capsys) -> None:
    assert main(arguments(files, "--labels", str(files / "labels.csv"))) == 0
    printed = capsys.readouterr().out
    assert "re-alignment is skipped" in printed
    assert "All" in printed and "Known" in printed and "Novel" in printed
    out = files / "out"
    for name in (
        "assignments.parquet",
        "categories.json",
        "run.json",
        "report.html",
        "rejected.csv",
        "state/state.safetensors",
        "state/state.json",
    ):
        assert (out / name).is_file(), name
    rows = pq.read_table(out / "assignments.parquet").to_pylist()
    assert [row["id"] for row in rows] == [str(i) for i in range(600)]
    for row in rows:
        assert row["kind"] == ("known" if row["category"] < 4 else "novel")
        assert row["name"] == (
            ["ant", "bee", "cat", "dog"][row["category"]]
            if row["category"] < 4
            else f"novel {row['category'] - 3}"
        )
    categories = json.loads((out / "categories.json").read_text())["categories"]
    counts = np.bincount([row["category"] for row in rows], minlength=8)
    assert [c["count"] for c in categories] == counts.tolist()
    scores = json.loads((out / "run.json").read_text())["scores"]
    assert scores["all"] > 60


def test_python_call_gives_the_same_answers(files) -> None:
    assert main(arguments(files)) == 0
    found = discover(
        files / "features.npy",
        known=["ant", "bee", "cat", "dog"],
        novel=4,
        anchors=str(files / "anchors.npy"),
        changes={"warmup": 256},
        preset="paper",
        shuffle=False,
        out=files / "again",
    )
    first = pq.read_table(files / "out" / "assignments.parquet")
    assert found.assignments() == first.to_pylist()


def test_another_implementation_goes_on_from_the_state(files) -> None:
    """Only the documented arrays and rates are used, none of the package's code."""
    features = np.load(files / "features.npy")
    np.save(files / "head.npy", features[:448])
    head = arguments(files)
    head[1], head[head.index("--out") + 1] = str(files / "head.npy"), str(files / "head")
    assert main(head) == 0 and main(arguments(files)) == 0
    state = load_file(files / "head" / "state" / "state.safetensors")
    values = json.loads((files / "head" / "state" / "state.json").read_text())
    values = values.get("values", values)
    z, mu, nu, e = (
        state[k].astype(float)
        for k in (
            "anchors",
            "learned/known_prototypes",
            "learned/novel_prototypes",
            "learned/evidence",
        )
    )
    config, answer = values["config"], []
    for begin in range(448, 600, 128):
        v = features[begin : begin + 128].astype(float)
        logits = values["logit_scale"] * v @ z.T
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        y, ranked = p.argmax(1), np.sort(p, 1)
        w = ranked[:, -1] - ranked[:, -2]
        cosines = np.hstack([np.where(e >= config["evidence_min"], v @ mu.T, -2), v @ nu.T])
        given = cosines.argmax(1)
        answer.extend(given)
        for k in range(4):
            total = (w[y == k, None] * v[y == k]).sum(0)
            if total.any():
                eta = config["known_rate"]
                mu[k] = unit(((1 - eta) * mu[k] + eta * total / np.linalg.norm(total))[None])[0]
        np.add.at(e, y, w)
        for j in range(len(nu)):
            total = v[given == 4 + j].sum(0)
            if total.any():
                lam = config["novel_rate"]
                nu[j] = unit(((1 - lam) * nu[j] + lam * total / np.linalg.norm(total))[None])[0]
    whole = pq.read_table(files / "out" / "assignments.parquet")["category"].to_numpy()
    np.testing.assert_array_equal(whole[448:], answer)


def test_memory_does_not_grow_with_the_stream(tmp_path) -> None:
    """Peak memory of 60,000 rows is near that of 20,000."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "anchors.npy", unit(rng.normal(size=(10, 512))))
    (tmp_path / "names.txt").write_text("\n".join(f"class {i}" for i in range(10)))
    peaks = []
    for count in (20_000, 60_000):
        np.save(tmp_path / "features.npy", unit(rng.normal(size=(count, 512))))
        command = arguments(tmp_path, "--overwrite")
        command[command.index("--warmup") + 1] = "1024"
        subprocess.run(
            [sys.executable, "-m", "ttgcd", *command],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "2"},
            capture_output=True,
        )
        record = json.loads((tmp_path / "out" / "run.json").read_text())
        peaks.append(record["peak_memory_bytes"])
    assert peaks[1] - peaks[0] < 45e6  # the rows themselves are 82 MB apart


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--novel", "-1"), "0 or more"),
        (("--novel", "many"), "whole number"),
        (("--known", ""), "at least one"),
        (("--known", "ant,bee,ant,dog"), "ant"),
        (("--known", "ant,bee"), "2 classes are named"),
        (("--anchors", "nowhere.npy"), "nowhere.npy"),
        (("--preset", "best"), "paper"),
        (("--batch-size", "0"), "batch_size"),
        (("--warmup", "1"), "warmup"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(files, capsys, change, message) -> None:
    command = arguments(files)
    if change[0] in command:
        command[command.index(change[0]) + 1] = change[1]
    else:
        command += change
    assert main(command) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("ttgcd: error: ") and "\n" not in error and message in error
    assert not (files / "out" / "assignments.parquet").exists()


def test_widths_that_differ_are_refused(files, capsys) -> None:
    np.save(files / "anchors.npy", np.eye(4, 7, dtype=np.float32))
    assert main(arguments(files)) == 2
    assert "24 dimensions but anchors 7" in capsys.readouterr().err


def test_nan_embeddings_are_refused_with_their_row(files, capsys) -> None:
    features = np.load(files / "features.npy")
    features[313, 2] = np.nan
    np.save(files / "features.npy", features)
    assert main(arguments(files)) == 2
    assert "313" in capsys.readouterr().err


def test_embeddings_without_anchors_are_refused(files) -> None:
    with pytest.raises(InputError, match="anchors="):
        discover(files / "features.npy", known=["ant"], novel=1, out=files / "out")


def test_print_config_runs_nothing(files, capsys) -> None:
    assert main(arguments(files, "--print-config")) == 0
    config = json.loads(capsys.readouterr().out)
    assert config["config"]["warmup"] == 256 and config["config"]["epochs"] == 30
    assert not (files / "out").exists()


def test_estimated_number_of_novel_categories(files, capsys) -> None:
    command = arguments(files)
    command[command.index("--novel") + 1] = "auto"
    assert main(command) == 0
    assert "estimated" in capsys.readouterr().out
    record = json.loads((files / "out" / "run.json").read_text())
    assert record["novel"] >= 1 and len(record["count_trace"]) > 1
