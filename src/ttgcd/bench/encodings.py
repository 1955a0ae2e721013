"""Features of the stream at hand, kept for the methods that meet the same encoder again.

A dozen rows of a table look at the same batches through the same weights: every method that keeps
the encoder, and every variant behind one re-alignment. Encoding is most of their time.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM

# Features kept at once; the oldest go first.
KEPT_BYTES = 2**29


class KeepsEncodings:
    """A model whose image features are read back for the same images under the same LayerNorms.

    Bit for bit what the model would give: the key holds the pixels of the whole batch, in order.
    Passes with a gradient always go through the model. ``saved`` sums the seconds that passes which
    were read back had taken, so that a row can count them.
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

    def encode_images(self, images: torch.Tensor, normalize: bool = True) -> torch.Tensor:
        if torch.is_grad_enabled():
            return self._vlm.encode_images(images, normalize)
        key = self._key(images, normalize)
        if key in self._kept:
            kept, seconds = self._kept[key]
            self._kept.move_to_end(key)
            self.saved += seconds
            # A new tensor: one made in inference mode must not meet autograd later.
            return torch.from_numpy(kept.copy())
        began = time.perf_counter()
        features = self._vlm.encode_images(images, normalize)
        self._kept[key] = (features.numpy().copy(), time.perf_counter() - began)
        self._bytes += features.nbytes
        while self._bytes > KEPT_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1][0].nbytes
        return features

    def _key(self, images: torch.Tensor, normalize: bool) -> bytes:
        key = hashlib.blake2b(f"{images.dtype} {tuple(images.shape)} {normalize}".encode())
        for parameter in self._vlm.norm_parameters("image").values():
            key.update(parameter.detach().numpy().data)
        key.update(images.contiguous().numpy().data)
        return key.digest()


def keeping_encodings(vlm: VLM) -> VLM:
    """The model with a memory; as it is on a GPU, where encoding is quicker than the book-keeping.

    ``saved_seconds`` reads the memory's account.
    """
    on_cpu = all(p.device.type == "cpu" for p in vlm.norm_parameters("image").values())
    return cast("VLM", KeepsEncodings(vlm)) if on_cpu else vlm


def saved_seconds(vlm: VLM) -> float:
    """Seconds of passes that were read back so far; 0 for a model without a memory."""
    return vlm.saved if isinstance(vlm, KeepsEncodings) else 0.0


def forget(vlm: VLM) -> None:
    """Drop what is kept of the stream before."""
    if isinstance(vlm, KeepsEncodings):
        vlm.forget()
