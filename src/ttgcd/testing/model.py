"""A tiny vision-language model, and worlds of images and embeddings to run methods on."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ttgcd.streams.base import Batch
from ttgcd.vlm.base import Tower, layer_norms
from ttgcd.vlm.encoder import Encoder, encoder_fingerprint
from ttgcd.vlm.precision import Precision
from ttgcd.vlm.preprocess import Preprocess

LETTERS = 256


class _Image(nn.Module):
    """A 4 x 4 grid of colours, mixed twice."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.first = nn.Linear(48, 2 * dim)
        self.norm = nn.LayerNorm(2 * dim)
        self.second = nn.Linear(2 * dim, dim)
        self.last_norm = nn.LayerNorm(dim)
        self.project = nn.Linear(dim, dim, bias=False)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        return self.first(F.adaptive_avg_pool2d(images.float() / 127.5 - 1.0, 4).flatten(1))

    def rest(self, embedded: torch.Tensor) -> torch.Tensor:
        hidden = self.second(F.gelu(self.norm(embedded)))
        return self.project(self.last_norm(hidden))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.rest(self.embed(images))


class _Text(nn.Module):
    """Letters weighted by their place, mixed once."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, dim)
        self.norm = nn.LayerNorm(dim)
        self.project = nn.Linear(dim, dim, bias=False)

    def forward(self, texts: Sequence[str]) -> torch.Tensor:
        rows = []
        for text in texts:
            codes = torch.tensor([ord(letter) % LETTERS for letter in text] or [0])
            weights = torch.cos(torch.arange(len(codes)) * 1.7).to(self.letters.weight.dtype)
            rows.append((weights[:, None] * self.letters(codes)).mean(dim=0))
        return self.project(torch.tanh(self.norm(torch.stack(rows))))


class _Towers:
    """Both towers as they are at the moment."""

    def __init__(self, towers: dict[str, nn.Module], dim: int, size: int) -> None:
        self.towers = towers
        self.dim = dim
        self.device = torch.device("cpu")
        self.preprocess = Preprocess(size=size)

    def encode_images(self, images: torch.Tensor, normalize: bool = True) -> torch.Tensor:
        features = self.towers["image"](images)
        return F.normalize(features, dim=-1) if normalize else features

    def encode_texts(self, texts: Sequence[str], normalize: bool = True) -> torch.Tensor:
        features = self.towers["text"](texts)
        return F.normalize(features, dim=-1) if normalize else features

    def all_weights(self) -> dict[str, np.ndarray]:
        """Every weight of both towers, copied."""
        return {
            f"{tower}/{key}": value.detach().numpy().copy()
            for tower, module in self.towers.items()
            for key, value in module.state_dict().items()
        }


class TinyVLM(_Towers):
    """Keeps the protocol of ``ttgcd.vlm.base.VLM``; equal seeds give equal weights.

    ``made`` lists the trainable copies that were asked for, ``encoded`` counts images.
    """

    def __init__(self, seed: int = 0, dim: int = 16, size: int = 8) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            towers: dict[str, nn.Module] = {"image": _Image(dim), "text": _Text(dim)}
        for tower in towers.values():
            tower.eval().requires_grad_(False)
        super().__init__(towers, dim, size)
        self.name = f"tiny-{seed}"
        self.fingerprint = f"tiny-{seed}-{dim}-{size}"
        self.logit_scale = 100.0
        self.made: list[TinyTrainable] = []
        self.encoded = 0

    def encoder(
        self, norms: Mapping[str, np.ndarray] | None = None, precision: Precision = "fp32"
    ) -> Encoder:
        own: _Towers = self
        if norms is not None:
            copied = TinyTrainable(self)
            copied.load_norms(norms)
            own = copied

        def forward(images: torch.Tensor) -> torch.Tensor:
            self.encoded += len(images)
            return own.encode_images(images)

        return Encoder(forward, encoder_fingerprint(self.fingerprint, norms, precision), self.dim)

    def trainable(self) -> TinyTrainable:
        self.made.append(TinyTrainable(self))
        return self.made[-1]


class TinyTrainable(_Towers):
    """Own norms, and here own copies of everything else too."""

    def __init__(self, vlm: TinyVLM) -> None:
        super().__init__(copy.deepcopy(vlm.towers), vlm.dim, vlm.preprocess.size)
        self._pretrained: dict[Tower, dict[str, np.ndarray]] = {
            "image": self.norm_arrays("image"),
            "text": self.norm_arrays("text"),
        }

    depth = 1

    def embed_images(self, images: torch.Tensor, below: int = 0) -> torch.Tensor:
        return cast(_Image, self.towers["image"]).embed(images)

    def encode_embedded(
        self, embedded: torch.Tensor, below: int = 0, normalize: bool = True
    ) -> torch.Tensor:
        features = cast(_Image, self.towers["image"]).rest(embedded)
        return F.normalize(features, dim=-1) if normalize else features

    def norm_parameters(self, tower: Tower = "image") -> dict[str, nn.Parameter]:
        return layer_norms(self.towers[tower])

    def upper_norms(self, below: int) -> dict[str, nn.Parameter]:
        return self.norm_parameters("image")

    def norm_arrays(self, tower: Tower = "image") -> dict[str, np.ndarray]:
        return {
            key: parameter.detach().numpy().copy()
            for key, parameter in self.norm_parameters(tower).items()
        }

    def load_norms(self, arrays: Mapping[str, np.ndarray], tower: Tower = "image") -> None:
        with torch.no_grad():
            for key, parameter in self.norm_parameters(tower).items():
                parameter.copy_(torch.from_numpy(np.array(arrays[key])))

    def reset(self) -> None:
        for tower, arrays in self._pretrained.items():
            self.load_norms(arrays, tower)


def image_world(
    count: int, classes: int, size: int = 8, noise: float = 20.0, seed: int = 0
) -> tuple[torch.Tensor, np.ndarray]:
    """Noisy copies of one random picture a class: uint8 (count, 3, size, size) and labels."""
    rng = np.random.default_rng(seed)
    pictures = rng.uniform(0, 255, size=(classes, 3, 4, 4))
    pictures = pictures.repeat(max(1, size // 4), axis=2).repeat(max(1, size // 4), axis=3)
    labels = rng.integers(0, classes, size=count)
    noisy = pictures[labels] + rng.normal(0, noise, size=(count, *pictures.shape[1:]))
    return torch.from_numpy(noisy.clip(0, 255).astype(np.uint8)), labels


def batches(data: torch.Tensor | np.ndarray, size: int, start: int = 0) -> list[Batch]:
    """Consecutive batches of images (a uint8 tensor) or of embeddings (a float array)."""
    parts = []
    for begin in range(start, len(data), size):
        end = min(begin + size, len(data))
        part = data[begin:end]
        parts.append(
            Batch(
                ids=tuple(f"sample-{i}" for i in range(begin, end)),
                start=begin,
                positions=tuple(range(begin, end)),
                next_position=end,
                images=part if isinstance(part, torch.Tensor) else None,
                features=None if isinstance(part, torch.Tensor) else part,
            )
        )
    return parts


def embedding_world(count: int = 90, dim: int = 16, classes: int = 5, seed: int = 3) -> np.ndarray:
    """Unit rows around one random direction a class."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(classes, dim))
    rows = means[rng.integers(0, classes, count)] + 0.3 * rng.normal(size=(count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
