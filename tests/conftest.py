"""Shared fixtures."""

from __future__ import annotations

import os

# Before numpy and torch are imported: two threads, and no test reads or fills the user's cache.
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
