"""What the rest of the house asks of a vision-language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
import torch
from torch import nn

from ttgcd.errors import InputError
from ttgcd.vlm.encoder import Encoder
from ttgcd.vlm.precision import Precision
from ttgcd.vlm.preprocess import Preprocess

Tower = Literal["image", "text"]


class NonFiniteError(InputError, FloatingPointError):
    """Features hold NaN or infinity: a broken checkpoint, or an adaptation that diverged."""


class Towers(Protocol):
    """Two encoders into one space, as they are at the moment."""

    dim: int
    preprocess: Preprocess
    device: torch.device

    def encode_images(self, images: torch.Tensor, normalize: bool = True) -> torch.Tensor:
        """Features (n, dim), float32, of uint8 (n, 3, S, S) images that `preprocess` returned."""
        ...

    def encode_texts(self, texts: Sequence[str], normalize: bool = True) -> torch.Tensor:
        """Features (n, dim), float32."""
        ...


class VLM(Towers, Protocol):
    """A pretrained model. Nothing changes it: it may serve any number of streams and threads."""

    name: str
    fingerprint: str
    """SHA-256 of the files that decide the features: weights, config, tokenizer."""
    logit_scale: float
    """Inverse temperature, already exponentiated: 100.0 for OpenAI's CLIP."""

    def encoder(
        self, norms: Mapping[str, np.ndarray] | None = None, precision: Precision = "fp32"
    ) -> Encoder:
        """An image encoder with own LayerNorm parameters (None: the pretrained ones)."""
        ...

    def trainable(self) -> Trainable:
        """A copy that shares every weight but the LayerNorms', which are its own to train."""
        ...


class Trainable(Towers, Protocol):
    """A model whose LayerNorm parameters belong to one method on one stream."""

    @property
    def depth(self) -> int:
        """Blocks of the image tower."""
        ...

    def embed_images(self, images: torch.Tensor, below: int = 0) -> torch.Tensor:
        """What block `below` of the image tower reads (0: what the first LayerNorm reads).

        Training the norms from there on does not change it.
        """
        ...

    def encode_embedded(
        self, embedded: torch.Tensor, below: int = 0, normalize: bool = True
    ) -> torch.Tensor:
        """Features of what `embed_images` returned for the same `below`."""
        ...

    def norm_parameters(self, tower: Tower = "image") -> dict[str, nn.Parameter]:
        """Weight and bias of every LayerNorm of a tower, by name, in the order of the modules."""
        ...

    def upper_norms(self, below: int) -> dict[str, nn.Parameter]:
        """Those of `norm_parameters("image")` that lie in block `below` or behind it."""
        ...

    def norm_arrays(self, tower: Tower = "image") -> dict[str, np.ndarray]:
        """Copies of the norm parameters, to be stored."""
        ...

    def load_norms(self, arrays: Mapping[str, np.ndarray], tower: Tower = "image") -> None:
        """The inverse of `norm_arrays`; an InputError when names or shapes differ."""
        ...

    def reset(self) -> None:
        """Put the norm parameters of both towers back to the pretrained values, bit for bit."""
        ...


def layer_norms(module: nn.Module) -> dict[str, nn.Parameter]:
    """Weight and bias of every LayerNorm inside `module`, in the order of its modules."""
    return {
        f"{name}.{part}": parameter
        for name, child in module.named_modules()
        if isinstance(child, nn.LayerNorm)
        for part, parameter in child.named_parameters(recurse=False)
    }


def check_finite(features: torch.Tensor, what: str) -> torch.Tensor:
    """Return `features`; a NonFiniteError that says `what` when one of them is NaN or infinite."""
    finite = torch.isfinite(features).flatten(1).all(dim=1)
    if not bool(finite.all()):
        rows = (~finite).nonzero().flatten()
        raise NonFiniteError(
            f"{what}: {len(rows)} of {len(finite)} features are not finite (first: row "
            f"{int(rows[0])}); the checkpoint is broken or the adaptation diverged, "
            "try another `model=...` or a lower learning rate"
        )
    return features
