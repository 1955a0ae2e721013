"""The one place where images become features outside of training: stateless encoders."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import numpy as np
import torch

from ttgcd.vlm.precision import Precision

#: Images that go through the model together. Fixed, so that a feature does not depend on how many
#: samples a caller hands over at once.
CHUNK = 128


class Encoder:
    """Images in, unit features out; nothing is remembered between calls.

    Encoders of one model share its weights and have LayerNorm parameters of their own: any number
    of them live side by side and may be called from several threads.

    Parameters
    ----------
    forward
        Unit features (n, dim) of uint8 images (n, 3, S, S), as a tensor.
    fingerprint
        Hash of all that decides the features: weights, norms, precision.
    dim
        Width of the features.
    """

    def __init__(
        self, forward: Callable[[torch.Tensor], torch.Tensor], fingerprint: str, dim: int
    ) -> None:
        self._forward = forward
        self.fingerprint = fingerprint
        self.dim = dim

    def __call__(self, images: torch.Tensor) -> np.ndarray:
        """Unit features, float32 (n, dim), of images that the model's ``preprocess`` returned."""
        if not len(images):
            return np.zeros((0, self.dim), np.float32)
        with torch.inference_mode():
            parts = [
                self._forward(images[begin : begin + CHUNK]).float().cpu().numpy()
                for begin in range(0, len(images), CHUNK)
            ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def encoder_fingerprint(
    model: str, norms: Mapping[str, np.ndarray] | None, precision: Precision = "fp32"
) -> str:
    """SHA-256 over the model's own fingerprint, the norms that replace its own, the precision."""
    digest = hashlib.sha256(f"{model} {precision}".encode())
    for name, array in sorted((norms or {}).items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
