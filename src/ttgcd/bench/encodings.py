"""Features of the stream at hand, kept for the methods that meet the same encoder again.

A dozen rows of a table look at the same batches through the same weights: every method that keeps
the encoder, and every variant behind one re-alignment. Encoding is most of their time.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from ttgcd.vlm.encoder import Encoder
from ttgcd.vlm.precision import Precision

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM

# Features kept at once; the oldest go first.
KEPT_BYTES = 2**29


class KeepsEncodings:
    """A model whose encoders read back the features of images that an equal encoder has met.

    Bit for bit what the model would give: the key holds the encoder's fingerprint and the pixels
    of the whole batch, in order. Passes with a gradient always go through the model. ``saved`` sums
    the seconds that passes which were read back had taken, so that a row can count them.
    """

    def __init__(self, vlm: VLM) -> None:
        self._vlm = vlm
        self._kept: OrderedDict[bytes, tuple[np.ndarray, float]] = OrderedDict()
        self._bytes = 0
        self.saved = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vlm, name)

    def forget(self) -> None:
        """Another stream begins."""
        self._kept.clear()
        self._bytes = 0

    def encoder(
        self, norms: Mapping[str, np.ndarray] | None = None, precision: Precision = "fp32"
    ) -> Encoder:
        return _KeptEncoder(self, self._vlm.encoder(norms, precision))

    def encode(self, encoder: Encoder, images: torch.Tensor) -> np.ndarray:
        key = _key(encoder, images)
        if key in self._kept:
            kept, seconds = self._kept[key]
            self._kept.move_to_end(key)
            self.saved += seconds
            return kept.copy()
        began = time.perf_counter()
        features = encoder(images)
        self._kept[key] = (features.copy(), time.perf_counter() - began)
        self._bytes += features.nbytes
        while self._bytes > KEPT_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1][0].nbytes
        return features


class _KeptEncoder(Encoder):
    """An encoder that asks the model's memory first."""

    def __init__(self, memory: KeepsEncodings, encoder: Encoder) -> None:
        self._memory, self._encoder = memory, encoder
        self.fingerprint, self.dim = encoder.fingerprint, encoder.dim

    def __call__(self, images: torch.Tensor) -> np.ndarray:
        return self._memory.encode(self._encoder, images)


def _key(encoder: Encoder, images: torch.Tensor) -> bytes:
    facts = f"{encoder.fingerprint} {images.dtype} {tuple(images.shape)}"
    key = hashlib.blake2b(facts.encode())
    key.update(images.contiguous().numpy().data)
    return key.digest()


def keeping_encodings(vlm: VLM, on_cpu: bool = True) -> VLM:
    """The model with a memory; as it is on a GPU, where encoding is quicker than the book-keeping.

    ``saved_seconds`` reads the memory's account.
    """
    return cast("VLM", KeepsEncodings(vlm)) if on_cpu else vlm


def saved_seconds(vlm: VLM) -> float:
    """Seconds of passes that were read back so far; 0 for a model without a memory."""
    return vlm.saved if isinstance(vlm, KeepsEncodings) else 0.0


def forget(vlm: VLM) -> None:
    """Drop what is kept of the stream before."""
    if isinstance(vlm, KeepsEncodings):
        vlm.forget()
