"""A tiny CLIP checkpoint, a tiny CIFAR-10-C, and result rows made by hand."""

from __future__ import annotations

import pytest

from tests.datasets.tiny import cifar_c
from tests.vlm.checkpoints import write_clip
from ttgcd.corruptions import HELD_OUT, KINDS

EVALUATION = [kind for kind in KINDS if kind not in HELD_OUT]


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return str(write_clip(tmp_path_factory.mktemp("model"), size=16))


@pytest.fixture(scope="session")
def cifar(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    cifar_c(root / "CIFAR-10-C", KINDS, images=40)
    return root


def make_row(label="PACT", stream="fog", seed=0, all_=50.0, **more):
    """A result row with what tables and figures read."""
    row = {
        "format": 1,
        "experiment": "main",
        "label": label,
        "run_id": f"{label}-{stream}-{seed}-{more.get('benchmark')}-{more.get('model')}",
        "benchmark": "cifar10-c",
        "stream": stream,
        "method": "pact",
        "model": "openai/clip-vit-base-patch16",
        "seed": seed,
        "novel": "given",
        "limit": None,
        "options": {},
        "metrics": {"all": all_, "known": all_ + 5, "novel": all_ - 5},
        "deciles": [all_ + part / 10 for part in range(10)],
        "novel_given": 5,
        "novel_classes": 5,
        "streams": 1,
        "rejected": 0,
        "answers": "arrival",
        "passes": 1,
        "ms_per_batch": 20.0,
        "warmup_s": 3.0,
        "stream_gb": 0.5,
        "fingerprint": "abc",
        "data_notes": [],
    }
    return {**row, **more}
