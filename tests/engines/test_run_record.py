"""run.json: enough to know how a result came about."""

from __future__ import annotations

import json
from datetime import datetime

from ttgcd.engines.run_record import Clock, manifest, peak_memory


def test_it_tells_what_was_run_on_what_and_how_long():
    record = manifest(
        Clock(),
        command=["ttgcd", "discover", "photos"],
        settings={"seed": 3},
        model={"name": "clip", "sha256": "ab"},
        input={"fingerprint": "cd", "samples": 5},
        seconds={"method": 1.23456},
    )
    record = json.loads(json.dumps(record, allow_nan=False))
    assert record["command"] == ["ttgcd", "discover", "photos"]
    assert record["settings"] == {"seed": 3}
    assert record["model"]["sha256"] == "ab"
    assert record["input"]["fingerprint"] == "cd"
    assert record["seconds"]["method"] == 1.235
    assert record["seconds"]["total"] >= 0
    assert {"python", "ttgcd", "torch", "transformers", "numpy"} <= record["versions"].keys()
    assert all(record["versions"][name] for name in ("python", "torch", "numpy"))
    assert record["machine"]["cpus"] >= 1
    assert datetime.fromisoformat(record["started"]) <= datetime.fromisoformat(record["ended"])


def test_peak_memory_is_that_of_this_process():
    before = peak_memory()
    block = bytearray(b"x") * (before + (64 << 20))
    assert peak_memory() >= len(block)
