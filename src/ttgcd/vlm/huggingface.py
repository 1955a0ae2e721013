"""CLIP and SigLIP on transformers' models, without torchvision."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from transformers import CLIPConfig, CLIPModel, PreTrainedModel, SiglipConfig, SiglipModel

from ttgcd.errors import InputError
from ttgcd.vlm import openclip
from ttgcd.vlm.base import Tower, check_finite, layer_norms
from ttgcd.vlm.checkpoint import Checkpoint
from ttgcd.vlm.encoder import PRECISIONS, Encoder, Precision, encoder_fingerprint
from ttgcd.vlm.preprocess import Preprocess, from_open_clip, from_transformers
from ttgcd.vlm.stem import build_stem
from ttgcd.vlm.tokens import Tokenize, clip_tokenizer, siglip_tokenizer


class StemCLIPModel(CLIPModel):
    """CLIPModel, with a convolutional stem when the config announces one."""

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__(config)
        stem = getattr(config.vision_config, "stem", None)
        if stem:
            self.vision_model.embeddings.patch_embedding = build_stem(stem)


class _AsGiven(nn.Module):
    """Stands in for the embeddings of an image tower whose input is embedded already."""

    def forward(self, pixel_values: torch.Tensor, **options: Any) -> torch.Tensor:
        return pixel_values


class _HuggingFaceTowers:
    """Both encoders of a transformers model in float32, in evaluation mode."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenize: Tokenize,
        preprocess: Preprocess,
        device: torch.device,
        dim: int | None = None,
    ) -> None:
        self.model = model
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
        features = _pooled(self.model.get_image_features(pixel_values=self._pixels(images)))
        return _finish(features, normalize, "image features")

    def _pixels(self, images: torch.Tensor) -> torch.Tensor:
        """The encoder's input, scaled and shifted."""
        side = self.preprocess.size
        if images.dtype != torch.uint8 or tuple(images.shape[1:]) != (3, side, side):
            raise InputError(
                f"encode_images takes uint8 of shape (n, 3, {side}, {side}), as preprocess returns "
                f"it, got {images.dtype} of shape {tuple(images.shape)}"
            )
        return images.to(self.device).float() * self._scale - self._shift

    def encode_texts(self, texts: Sequence[str], normalize: bool = True) -> torch.Tensor:
        if isinstance(texts, str):
            raise InputError("encode_texts takes a list of texts, got a single one")
        if not texts:
            return torch.empty((0, self.dim), device=self.device)
        tokens = {key: value.to(self.device) for key, value in self._tokenize(texts).items()}
        features = _pooled(self.model.get_text_features(**tokens))
        return _finish(features, normalize, "text features")


class HuggingFaceVLM(_HuggingFaceTowers):
    """A `VLM` around a transformers model: pretrained, and so it stays."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        model: PreTrainedModel,
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
        forward = self.encode_images
        if norms is not None:
            own = self.trainable()
            own.load_norms(norms)
            forward = own.encode_images
        return Encoder(forward, encoder_fingerprint(self.fingerprint, norms, precision), self.dim)

    def trainable(self) -> HuggingFaceTrainable:
        """The copy takes a few milliseconds and the memory of the LayerNorms."""
        norms = {
            id(p) for tower in _towers(self.model).values() for p in layer_norms(tower).values()
        }
        shared = {id(p): p for p in self.model.parameters() if id(p) not in norms}
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
        model: PreTrainedModel,
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

    def embed_images(self, images: torch.Tensor) -> torch.Tensor:
        return self.model.vision_model.embeddings(self._pixels(images))

    def encode_embedded(self, embedded: torch.Tensor) -> torch.Tensor:
        tower = self.model.vision_model
        embeddings, tower.embeddings = tower.embeddings, _AsGiven()
        try:
            features = _pooled(self.model.get_image_features(pixel_values=embedded))
        finally:
            tower.embeddings = embeddings
        return _finish(features, True, "image features")

    def norm_parameters(self, tower: Tower = "image") -> dict[str, nn.Parameter]:
        return layer_norms(_towers(self.model)[tower])

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


def _towers(model: PreTrainedModel) -> dict[Tower, nn.Module]:
    return {"image": model.vision_model, "text": model.text_model}


def build(checkpoint: Checkpoint, device: torch.device) -> HuggingFaceVLM:
    """Load a checkpoint of either layout."""
    if checkpoint.open_clip:
        settings = checkpoint.json("open_clip_config.json")
        config = openclip.clip_config(settings)
        tensors = openclip.clip_tensors(checkpoint.tensors())
        preprocess = from_open_clip(
            settings.get("preprocess_cfg", {}), config.vision_config.image_size
        )
    else:
        config = _config(checkpoint)
        tensors = checkpoint.tensors()
        preprocess = from_transformers(_processor(checkpoint))
    if preprocess.size != config.vision_config.image_size:
        raise InputError(
            f"model {checkpoint.name}: the preprocessing gives images of side {preprocess.size}, "
            f"the image encoder takes {config.vision_config.image_size}"
        )
    text = config.text_config
    if isinstance(config, CLIPConfig):
        model = load_weights(StemCLIPModel, config, tensors, checkpoint.name)
        if getattr(config.vision_config, "stem", None):  # its convolutions are faster this way
            stem = model.vision_model.embeddings.patch_embedding
            stem.to(memory_format=torch.channels_last)
        tokenize = clip_tokenizer(
            checkpoint, text.max_position_embeddings, text.vocab_size, text.eos_token_id
        )
    else:
        model = load_weights(SiglipModel, config, tensors, checkpoint.name)
        tokenize = siglip_tokenizer(checkpoint, text.max_position_embeddings, text.vocab_size)
    return HuggingFaceVLM(
        checkpoint.name, checkpoint.fingerprint(), model, tokenize, preprocess, device
    )


def load_weights(
    kind: type[PreTrainedModel],
    config: CLIPConfig | SiglipConfig,
    tensors: Mapping[str, torch.Tensor],
    name: str,
) -> PreTrainedModel:
    """A float32 model with exactly these weights: one that is missing is an error, never random."""
    with torch.device("meta"):
        model = kind(config)
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
    # Buffers that are not stored are still without memory.
    for module in model.modules():
        if "position_ids" in dict(module.named_buffers(recurse=False)):
            module.position_ids = torch.arange(module.position_ids.shape[-1])[None]
    return model


def _config(checkpoint: Checkpoint) -> CLIPConfig | SiglipConfig:
    settings = checkpoint.json("config.json")
    kinds: dict[Any, type[CLIPConfig] | type[SiglipConfig]] = {
        "clip": CLIPConfig,
        "siglip": SiglipConfig,
    }
    kind = kinds.get(settings.get("model_type"))
    if kind is None:
        raise InputError(
            f"model {checkpoint.name}: model_type {settings.get('model_type')!r} is not supported; "
            "use a CLIP or SigLIP checkpoint, or one in OpenCLIP's layout"
        )
    return kind.from_dict(settings)


def _processor(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The image processor's settings; transformers 5 writes them into a file of another name."""
    if (checkpoint.folder / "preprocessor_config.json").is_file():
        return checkpoint.json("preprocessor_config.json")
    settings = checkpoint.json("processor_config.json").get("image_processor")
    if not isinstance(settings, dict):
        raise InputError(f"model {checkpoint.name}: processor_config.json has no image_processor")
    return settings


def _pooled(output: Any) -> torch.Tensor:
    """transformers 4 returns the features, transformers 5 an object that holds them."""
    return output if isinstance(output, torch.Tensor) else output.pooler_output


def _finish(features: torch.Tensor, normalize: bool, what: str) -> torch.Tensor:
    features = check_finite(features.float(), what)
    return F.normalize(features, dim=-1) if normalize else features
