"""Every image is read and encoded once for each version of the encoder, and no more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from ttgcd.discovery import discover
from ttgcd.streams import stream as stream_module
from ttgcd.vlm.encoder import Encoder

COUNT, WARMUP = 48, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        colour = rng.integers(0, 256, (4, 4, 3)).astype(np.uint8)
        Image.fromarray(colour).resize((40, 40)).save(where / f"{number:03}.jpg")
    return where


class Counts:
    def __init__(self) -> None:
        self.decoded = 0
        self.encoded: Counter[str] = Counter()  # images by the encoder's fingerprint


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    seen = Counts()
    decode, encode = stream_module.decode, Encoder.__call__

    def decoding(*arguments: Any, **options: Any) -> np.ndarray:
        seen.decoded += 1
        return decode(*arguments, **options)

    def encoding(self: Encoder, images: torch.Tensor) -> np.ndarray:
        seen.encoded[self.fingerprint] += len(images)
        return encode(self, images)

    monkeypatch.setattr(stream_module, "decode", decoding)
    monkeypatch.setattr(Encoder, "__call__", encoding)
    return seen


def run(folder: Path, out: Path, novel: int | str, **changes: Any) -> None:
    discover(
        folder,
        out=out,
        known=["cat", "dog", "house"],
        novel=novel,
        model="mini",
        preset="paper",
        vocabulary="none",
        batch_size=8,
        changes={"warmup": WARMUP, **changes},
    )


@pytest.mark.parametrize("novel", [2, "auto"])
def test_without_training_every_image_is_encoded_once(
    novel: int | str, folder: Path, counts: Counts, tmp_path: Path
) -> None:
    run(folder, tmp_path / "out", novel, epochs=0)
    assert counts.decoded == COUNT
    assert list(counts.encoded.values()) == [COUNT]


def test_new_norms_cost_the_buffer_once_more(folder: Path, counts: Counts, tmp_path: Path) -> None:
    run(folder, tmp_path / "out", 2, epochs=1)
    assert counts.decoded == COUNT
    assert list(counts.encoded.values()) == [WARMUP, COUNT]
