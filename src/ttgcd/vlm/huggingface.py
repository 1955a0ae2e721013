"""CLIP and SigLIP from checkpoints in transformers' and OpenCLIP's layouts."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.vlm import openclip
from ttgcd.vlm.architecture import Architecture
from ttgcd.vlm.base import Tower, check_finite, layer_norms
from ttgcd.vlm.checkpoint import Checkpoint
from ttgcd.vlm.encoder import Encoder, encoder_fingerprint
from ttgcd.vlm.int8 import int8_copy
from ttgcd.vlm.precision import PRECISIONS, Precision
from ttgcd.vlm.preprocess import Preprocess, from_open_clip, from_transformers
from ttgcd.vlm.tokens import Tokenize, clip_tokenizer, siglip_tokenizer
from ttgcd.vlm.towers import DualEncoder

# Tokens that go through the image tower together where nothing is trained: few enough for a block's
# widest array to stay in a processor's cache, enough for its matrix products.
_CACHED_TOKENS = 1600


class _HuggingFaceTowers:
    """Both encoders of a model in float32, in evaluation mode."""

    def __init__(
        self,
        model: DualEncoder,
        tokenize: Tokenize,
        preprocess: Preprocess,
        device: torch.device,
        dim: int | None = None,
        bf16: bool = False,
    ) -> None:
        self.model = model
        self._bf16 = bf16
        self.preprocess = preprocess
        self.device = device
        self._tokenize = tokenize
        # (uint8 * rescale - mean) / std as one multiplication and one subtraction.
        std = torch.tensor(preprocess.std, device=device).view(1, 3, 1, 1)
        self._scale = preprocess.rescale / std
        self._shift = torch.tensor(preprocess.mean, device=device).view(1, 3, 1, 1) / std
        if dim is None:
            with torch.no_grad():
                dim = int(self.encode_texts(["a"], normalize=False).shape[1])
        self.dim = dim

    def encode_images(self, images: torch.Tensor, normalize: bool = True) -> torch.Tensor:
        if not len(images):
            return torch.empty((0, self.dim), device=self.device)
        # The residual stream starts in float32 and sums keep the wider type, so that norms read and
        # compute float32; only the products run in bfloat16.
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bf16):
            features = torch.cat(
                [self.model.image_features(self._pixels(piece)) for piece in self._pieces(images)]
            )
        return _finish(features, normalize, "image features")

    def in_bf16(self) -> _HuggingFaceTowers:
        """These towers with the image tower's products in bfloat16."""
        return _HuggingFaceTowers(
            self.model, self._tokenize, self.preprocess, self.device, self.dim, bf16=True
        )

    def in_int8(self) -> _HuggingFaceTowers:
        """These towers with the image tower's matrix products in int8 (see `int8.py`)."""
        model = copy.copy(self.model)
        model._modules = {**model._modules, "vision_model": int8_copy(self.model.vision_model)}
        return _HuggingFaceTowers(model, self._tokenize, self.preprocess, self.device, self.dim)

    def _pieces(self, images: torch.Tensor) -> Sequence[torch.Tensor]:
        """The batch in equal parts that fit a processor's cache; as one for training or a GPU."""
        if torch.is_grad_enabled() or self.device.type != "cpu":
            return [images]
        tokens = len(images) * self.model.vision_model.embeddings.position_embedding.num_embeddings
        return images.tensor_split(min(len(images), -(-tokens // _CACHED_TOKENS)))

    def _pixels(self, images: torch.Tensor) -> torch.Tensor:
        """The encoder's input, scaled and shifted."""
        side = self.preprocess.size
        if images.dtype != torch.uint8 or tuple(images.shape[1:]) != (3, side, side):
            raise InputError(
                f"encode_images takes uint8 of shape (n, 3, {side}, {side}), as preprocess returns "
                f"it, got {images.dtype} of shape {tuple(images.shape)}"
            )
        if self.device.type == "cuda":
            images = images.pin_memory()  # so that the copy need not wait, nor be waited for
        pixels = images.to(self.device, non_blocking=True).float()
        return pixels * self._scale - self._shift

    def encode_texts(self, texts: Sequence[str], normalize: bool = True) -> torch.Tensor:
        if isinstance(texts, str):
            raise InputError("encode_texts takes a list of texts, got a single one")
        if not texts:
            return torch.empty((0, self.dim), device=self.device)
        tokens = {key: value.to(self.device) for key, value in self._tokenize(texts).items()}
        features = self.model.text_features(tokens["input_ids"])
        return _finish(features, normalize, "text features")


class HuggingFaceVLM(_HuggingFaceTowers):
    """A `VLM` from a checkpoint: pretrained, and so it stays."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        model: DualEncoder,
        tokenize: Tokenize,
        preprocess: Preprocess,
        device: torch.device,
    ) -> None:
        model = model.eval().requires_grad_(False).to(device)
        super().__init__(model, tokenize, preprocess, device)
        self.name = name
        self.fingerprint = fingerprint
        self.logit_scale = float(model.logit_scale.exp())

    def encoder(
        self, norms: Mapping[str, np.ndarray] | None = None, precision: Precision = "fp32"
    ) -> Encoder:
        if precision not in PRECISIONS:
            raise InputError(f"unknown precision {precision!r}: choose {', '.join(PRECISIONS)}")
        towers: _HuggingFaceTowers = self
        if norms is not None:
            towers = self.trainable()
            towers.load_norms(norms)
        if precision != "fp32":
            towers = towers.in_int8() if precision == "int8" else towers.in_bf16()
        forward = towers.encode_images
        return Encoder(forward, encoder_fingerprint(self.fingerprint, norms, precision), self.dim)

    def trainable(self) -> HuggingFaceTrainable:
        """The copy takes a few milliseconds and the memory of the LayerNorms."""
        norms = {
            id(p) for tower in _towers(self.model).values() for p in layer_norms(tower).values()
        }
        shared: dict[int, Any] = {id(p): p for p in self.model.parameters() if id(p) not in norms}
        shared |= {id(b): b for b in self.model.buffers()}
        model = copy.deepcopy(self.model, shared)
        return HuggingFaceTrainable(
            self.name, model, self._tokenize, self.preprocess, self.device, self.dim
        )


class HuggingFaceTrainable(_HuggingFaceTowers):
    """A `Trainable`: own LayerNorms over the weights of a `HuggingFaceVLM`."""

    def __init__(
        self,
        name: str,
        model: DualEncoder,
        tokenize: Tokenize,
        preprocess: Preprocess,
        device: torch.device,
        dim: int,
    ) -> None:
        super().__init__(model, tokenize, preprocess, device, dim)
        self.name = name
        for tower in _towers(model):
            for parameter in self.norm_parameters(tower).values():
                parameter.requires_grad_(True)
        self._pretrained = {
            (tower, key): parameter.detach().clone()
            for tower in _towers(model)
            for key, parameter in self.norm_parameters(tower).items()
        }

    @property
    def depth(self) -> int:
        return self.model.vision_model.depth

    def embed_images(self, images: torch.Tensor, below: int = 0) -> torch.Tensor:
        tower = self.model.vision_model
        return tower.run(tower.embed(self._pixels(images)), 0, below)

    def encode_embedded(
        self, embedded: torch.Tensor, below: int = 0, normalize: bool = True
    ) -> torch.Tensor:
        tower = self.model.vision_model
        features = self.model.project(tower.pool(tower.run(embedded, below, tower.depth)))
        return _finish(features, normalize, "image features")

    def norm_parameters(self, tower: Tower = "image") -> dict[str, nn.Parameter]:
        return layer_norms(_towers(self.model)[tower])

    def upper_norms(self, below: int) -> dict[str, nn.Parameter]:
        if below == 0:
            return self.norm_parameters("image")
        lower = {f"encoder.layers.{block}." for block in range(below)} | {"pre_layrnorm."}
        return {
            key: parameter
            for key, parameter in self.norm_parameters("image").items()
            if not any(key.startswith(prefix) for prefix in lower)
        }

    def norm_arrays(self, tower: Tower = "image") -> dict[str, np.ndarray]:
        return {
            key: parameter.detach().cpu().numpy().copy()
            for key, parameter in self.norm_parameters(tower).items()
        }

    def load_norms(self, arrays: Mapping[str, np.ndarray], tower: Tower = "image") -> None:
        parameters = self.norm_parameters(tower)
        if set(arrays) != set(parameters):
            odd = sorted(set(arrays) ^ set(parameters))
            raise InputError(f"stored norms are of another model than {self.name}: {odd[0]}")
        for key, parameter in parameters.items():
            if arrays[key].shape != tuple(parameter.shape):
                raise InputError(
                    f"stored norms are of another model than {self.name}: {key} has shape "
                    f"{arrays[key].shape}, expected {tuple(parameter.shape)}"
                )
        with torch.no_grad():
            for key, parameter in parameters.items():
                parameter.copy_(torch.from_numpy(np.array(arrays[key], dtype=np.float32)))

    def reset(self) -> None:
        with torch.no_grad():
            for (tower, key), pretrained in self._pretrained.items():
                parameter = self.norm_parameters(tower)[key]
                parameter.copy_(pretrained)
                parameter.grad = None


def _towers(model: DualEncoder) -> dict[Tower, nn.Module]:
    return {"image": model.vision_model, "text": model.text_model}


def build(checkpoint: Checkpoint, device: torch.device) -> HuggingFaceVLM:
    """Load a checkpoint of either layout."""
    if checkpoint.open_clip:
        settings = checkpoint.json("open_clip_config.json")
        architecture = Architecture("clip", openclip.clip_config(settings))
        tensors = openclip.clip_tensors(checkpoint.tensors())
        preprocess = from_open_clip(settings.get("preprocess_cfg", {}), architecture.image_size)
    else:
        architecture = _architecture(checkpoint)
        tensors = checkpoint.tensors()
        preprocess = from_transformers(_processor(checkpoint))
    if preprocess.size != architecture.image_size:
        raise InputError(
            f"model {checkpoint.name}: the preprocessing gives images of side {preprocess.size}, "
            f"the image encoder takes {architecture.image_size}"
        )
    model = load_weights(architecture, tensors, checkpoint.name)
    text = architecture.text
    length, vocabulary = text["max_position_embeddings"], text["vocab_size"]
    if architecture.family == "clip":
        if architecture.stem:  # its convolutions are faster this way
            stem: Any = model.vision_model.embeddings.patch_embedding
            stem.to(memory_format=torch.channels_last)
        tokenize = clip_tokenizer(checkpoint, length, vocabulary, text["eos_token_id"])
    else:
        tokenize = siglip_tokenizer(checkpoint, length, vocabulary)
    return HuggingFaceVLM(
        checkpoint.name, checkpoint.fingerprint(), model, tokenize, preprocess, device
    )


def load_weights(
    architecture: Architecture, tensors: Mapping[str, torch.Tensor], name: str
) -> DualEncoder:
    """A float32 model with exactly these weights: one that is missing is an error, never random."""
    with torch.device("meta"):
        model = architecture.build()
    expected = model.state_dict()
    missing = sorted(set(expected) - set(tensors))
    if missing:
        raise InputError(
            f"model {name}: {len(missing)} weights are missing in the checkpoint, e.g. {missing[0]}"
        )
    for key, value in expected.items():
        if tensors[key].numel() != value.numel() or (
            value.ndim and tensors[key].shape != value.shape
        ):
            raise InputError(
                f"model {name}: {key} has shape {tuple(tensors[key].shape)}, the config says "
                f"{tuple(value.shape)}"
            )
    # Copies, into memory that torch aligns: where a tensor lies in its file would otherwise decide
    # which kernels run, and so the last bits of the features.
    weights = {
        key: tensors[key].reshape(value.shape).to(torch.float32, copy=True)
        for key, value in expected.items()
    }
    model.load_state_dict(weights, assign=True)
    return model


def _architecture(checkpoint: Checkpoint) -> Architecture:
    settings = checkpoint.json("config.json")
    kind = settings.get("model_type")
    if kind not in ("clip", "siglip"):
        raise InputError(
            f"model {checkpoint.name}: model_type {kind!r} is not supported; "
            "use a CLIP or SigLIP checkpoint, or one in OpenCLIP's layout"
        )
    return Architecture(kind, settings)


def _processor(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The image processor's settings; transformers 5 writes them into a file of another name."""
    if (checkpoint.folder / "preprocessor_config.json").is_file():
        return checkpoint.json("preprocessor_config.json")
    settings = checkpoint.json("processor_config.json").get("image_processor")
    if not isinstance(settings, dict):
        raise InputError(f"model {checkpoint.name}: processor_config.json has no image_processor")
    return settings


def _finish(features: torch.Tensor, normalize: bool, what: str) -> torch.Tensor:
    features = check_finite(features.float(), what)
    return F.normalize(features, dim=-1) if normalize else features
