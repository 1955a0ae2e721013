"""Shared fixtures."""

from __future__ import annotations

import os

# Before numpy and torch are imported. One thread: the models are tiny and the tests run in parallel
# processes; threads that wait for each other on a busy machine would cost more than they bring.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest  # noqa: E402


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
