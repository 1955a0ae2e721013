"""Passes over the stream at hand, kept for the methods that meet the same encoder again.

A dozen rows of a table look at the same batches through the same weights: every method that keeps
the encoder, and every variant behind one re-alignment. Encoding is most of their time.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from ttgcd.vlm.encoder import Encoder
from ttgcd.vlm.precision import Precision

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM, Trainable

# Features kept at once; the oldest go first.
KEPT_BYTES = 2**30
# What is larger than this an image is not kept: the patches of a ViT of CLIP's size are quickly
# embedded and would push out the features of the whole stream. Those of a convolutional stem fit.
KEPT_AN_IMAGE = 2**15


class KeepsEncodings:
    """A model whose encoders read back the features of images that an equal encoder has met, and
    whose trainable copies read back what lies below their first LayerNorm.

    Bit for bit what the model would give: the key holds the encoder's fingerprint and the pixels
    of the whole batch, in order. Passes with a gradient always go through the blocks. ``saved``
    sums the seconds that passes which were read back had taken, so that a row can count them.
    """

    def __init__(self, vlm: VLM) -> None:
        self._vlm = vlm
        self._below = vlm.trainable()  # for its embedding; nobody trains it
        self._kept: OrderedDict[bytes, tuple[torch.Tensor, float]] = OrderedDict()
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
        plain = self._vlm.encoder(norms, precision)
        return Encoder(_Remembered(self, plain, norms, precision), plain.fingerprint, plain.dim)

    def trainable(self) -> Trainable:
        return cast("Trainable", _RemembersBelow(self, self._vlm.trainable()))

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """What the first LayerNorm reads."""

        def below() -> torch.Tensor:
            with torch.no_grad():
                return self._below.embed_images(images)

        return self.read_back(f"embedded {self._vlm.fingerprint}", images, below)

    def read_back(
        self, what: str, images: torch.Tensor, make: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        """What was kept of these images, or made now and kept."""
        key = _key(what, images)
        if key in self._kept:
            kept, seconds = self._kept[key]
            self._kept.move_to_end(key)
            self.saved += seconds
            return kept.clone()
        began, saved = time.perf_counter(), self.saved
        made = make()
        if made.nbytes > KEPT_AN_IMAGE * len(images):
            return made
        # What was read back on the way took its time once.
        seconds = time.perf_counter() - began + self.saved - saved
        self._kept[key] = (made.clone(), seconds)
        self._bytes += made.nbytes
        while self._bytes > KEPT_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1][0].nbytes
        return made


class _Remembered:
    """The forward pass of an encoder that asks the model's memory first."""

    def __init__(
        self,
        memory: KeepsEncodings,
        plain: Encoder,
        norms: Mapping[str, np.ndarray] | None,
        precision: Precision,
    ) -> None:
        self._memory, self._plain = memory, plain
        self._model: Trainable | None = None
        if precision == "fp32":
            self._model = memory.trainable()
            if norms is not None:
                self._model.load_norms(norms)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        def make() -> torch.Tensor:
            if self._model is None:
                return torch.from_numpy(self._plain(images))
            return self._model.encode_embedded(self._model.embed_images(images))

        return self._memory.read_back(self._plain.fingerprint, images, make)


class _RemembersBelow:
    """A trainable copy whose embedding is the same as its model's, and kept there."""

    def __init__(self, memory: KeepsEncodings, model: Trainable) -> None:
        self._memory, self._model = memory, model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def embed_images(self, images: torch.Tensor, below: int = 0) -> torch.Tensor:
        return self._memory.embed(images) if below == 0 else self._model.embed_images(images, below)


def _key(what: str, images: torch.Tensor) -> bytes:
    facts = f"{what} {images.dtype} {tuple(images.shape)}"
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
