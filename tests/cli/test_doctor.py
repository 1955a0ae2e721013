"""The doctor names what is there, what is missing and what to install."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ttgcd.cli import main
from ttgcd.discovery import machine
from ttgcd.discovery.machine import Pace, cached_models, examine, missing_packages


def by_topic() -> dict[str, machine.Finding]:
    return {finding.topic: finding for finding in examine(timeout=0.2)}


def test_it_measures_the_embedded_model_and_says_what_a_folder_costs(monkeypatch, capsys) -> None:
    monkeypatch.setattr(machine, "_SECONDS_OF_MEASURING", 0.05)
    assert main(["doctor", "--model", "mini", "--images", "500"]) == 0
    said = capsys.readouterr().out
    assert "speed       mini:" in said and "encoding 500 images takes about" in said
    assert "re-aligning the encoder (--realign, --preset paper) adds about" in said
    assert "(buffer of 1,024, 30 epochs)" in said
    assert "torch" in said and "JPEG" in said


def test_the_cost_counts_the_stream_once_and_the_buffer_three_times_an_epoch() -> None:
    pace = Pace("m", "cpu", 2, images_per_second=10.0, warmup=100, epochs=2)
    assert pace.seconds(1000) == pytest.approx((1000 + 100 * 2 * 3) / 10)
    assert pace.seconds(50) == pytest.approx((50 + 50 * 2 * 3) / 10)


def test_for_programs(capsys) -> None:
    assert main(["doctor", "--no-speed", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["pace"] is None
    assert {"Python", "torch", "models"} <= {finding["topic"] for finding in answer["findings"]}


def test_what_is_missing_comes_with_the_command_that_installs_it(monkeypatch) -> None:
    monkeypatch.setattr("ttgcd.streams.formats.HAS_HEIC", False)
    monkeypatch.setattr(machine, "_requirements", lambda: {"figures": ["no-such-package"]})
    found = by_topic()
    assert found["HEIC"].advice == "pip install 'ttgcd[heic]'"
    assert found["figures"].advice == "pip install 'ttgcd[figures]'"
    assert missing_packages("figures") == ["no-such-package"]


def test_a_hub_that_cannot_be_reached_is_no_fault(monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    found = by_topic()["model hub"]
    assert found.level == "note" and "cannot be reached" in found.seen


def test_cached_models_are_those_that_can_be_used(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, kind in (("a--clip", "clip"), ("b--bert", "bert"), ("c--broken", None)):
        snapshot = tmp_path / f"models--{name}" / "snapshots" / "1"
        snapshot.mkdir(parents=True)
        text = "{" if kind is None else json.dumps({"model_type": kind})
        (snapshot / "config.json").write_text(text)
    assert cached_models() == ["a/clip"]
