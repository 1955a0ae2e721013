"""Stage one of PACT: train the image encoder's LayerNorm parameters on the buffer (Eq. 3)."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F

from ttgcd.errors import InputError
from ttgcd.methods.optimiser_state import load_optimiser_arrays
from ttgcd.vlm.base import VLM, Trainable

Optimiser = Literal["sgd", "momentum", "adam", "adamw"]
Normaliser = Literal["buffer", "minibatch"]


# What comes before the first trained LayerNorm is computed once when it fits into this much memory.
# If all are trained that is the patch embedding: the embedded model's convolutional stem is worth
# keeping, that of a ViT of CLIP's size is not. With the upper blocks alone there is more to save.
EMBEDDED_BYTES = 2**28
LOWER_BYTES = 2**30


class Realigned(NamedTuple):
    """What a re-alignment gave: LayerNorm parameters, mean loss of each epoch, its duration."""

    norms: dict[str, np.ndarray]
    losses: list[float]
    seconds: float


def realign_key(
    vlm: VLM,
    images: torch.Tensor,
    anchors: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    **settings: Any,
) -> str:
    """A hash of all that decides the outcome of ``realign`` from the pretrained encoder."""
    facts = [vlm.fingerprint, torch.__version__, torch.get_num_threads(), settings]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    key.update(Path(__file__).read_bytes())
    for array in (images.cpu().numpy(), anchors, labels, weights):
        key.update(f"{array.dtype} {array.shape}".encode())
        key.update(np.ascontiguousarray(array).data)
    return key.hexdigest()


class PlainSgd:
    """p <- p - lr * gradient, bit for bit what ``torch.optim.SGD`` does.

    The first optimiser of torch's own imports its compiler, which takes as long as torch itself.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], lr: float) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": list(parameters), "lr": lr}]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is not None:
                parameter.add_(parameter.grad, alpha=-self.param_groups[0]["lr"])

    def state_dict(self) -> dict[str, Any]:
        """It remembers nothing between steps."""
        return {"state": {}}


def make_optimiser(
    name: Optimiser, parameters: list[torch.nn.Parameter], lr: float
) -> torch.optim.Optimizer:
    """An optimiser by name, weight decay 0: decay would pull LayerNorm scales to 0, not to 1."""
    if name == "sgd":
        return cast(torch.optim.Optimizer, PlainSgd(parameters, lr))
    if name == "momentum":
        return torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    if name == "adam":
        return torch.optim.Adam(parameters, lr=lr)
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    raise InputError(f"unknown optimiser {name!r}: choose sgd, momentum, adam or adamw")


def weighted_cross_entropy(
    features: torch.Tensor,
    anchors: torch.Tensor,
    labels: torch.Tensor,
    weights: torch.Tensor,
    logit_scale: float,
    mean_weight: float | None,
) -> torch.Tensor:
    """mean(omega * -log p(y)) / mean weight, of the buffer or (None) of these samples.

    Over the whole buffer this is Eq. 3. Over a minibatch the buffer's mean weight keeps Eq. 3 as
    the expectation, and a minibatch of tiny weights cannot blow up; its own is Eq. 3 read as the
    objective of each minibatch. -log p(y) is the alignment term plus the normalisation (Eq. 4).
    """
    losses = F.cross_entropy(logit_scale * features @ anchors.T, labels, reduction="none")
    if mean_weight is None:
        tiny = torch.finfo(weights.dtype).tiny  # no confident sample: a loss of 0, not 0 / 0
        return (weights * losses).sum() / weights.sum().clamp_min(tiny)
    return (weights * losses).mean() / mean_weight


def converged(losses: Sequence[float], early_stop: float) -> bool:
    """Whether the last epoch's loss is no longer below the best before it by that share."""
    if early_stop <= 0 or len(losses) < 2:
        return False
    best = min(losses[:-1])
    return best - losses[-1] < early_stop * abs(best)


def realign(
    model: Trainable,
    images: torch.Tensor,
    anchors: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    *,
    logit_scale: float,
    epochs: int,
    lr: float,
    batch_size: int,
    optimiser: Optimiser,
    seed: int,
    normaliser: Normaliser = "buffer",
    depth: int = 0,
    first_epoch: int = 0,
    optimiser_state: Mapping[str, np.ndarray] | None = None,
    after_epoch: Callable[[int, float, torch.optim.Optimizer], bool | None] | None = None,
    forecast: Callable[[float], None] | None = None,
) -> None:
    """Minimise Eq. 3 over the image tower's LayerNorm parameters, in place.

    The shuffle of each epoch depends only on (seed, epoch), so ``first_epoch`` with
    ``optimiser_state`` goes on exactly where an interrupted run stopped. With ``depth`` only the
    last so many blocks are trained; what they read is computed once. ``after_epoch`` may end the
    training by returning True; ``forecast`` hears after the first step how many seconds all of it
    will take.
    """
    below = max(0, model.depth - depth) if depth else 0
    parameters = list(model.upper_norms(below).values())
    step = make_optimiser(optimiser, parameters, lr)
    if optimiser_state:
        load_optimiser_arrays(step, optimiser_state)
    device = parameters[0].device
    anchor_rows = torch.from_numpy(anchors).to(device)
    all_labels = torch.from_numpy(np.asarray(labels, np.int64)).to(device)
    all_weights = torch.from_numpy(np.asarray(weights, np.float32)).to(device)
    mean_weight = float(np.mean(weights)) if normaliser == "buffer" else None
    embedded = _embedded(model, images, batch_size, below) if epochs > 1 or below else None
    steps = (epochs - first_epoch) * -(-len(images) // batch_size)
    with _training(parameters):
        for epoch in range(first_epoch, epochs):
            order = np.random.default_rng([seed, epoch]).permutation(len(images))
            total = 0.0
            for begin in range(0, len(order), batch_size):
                rows = torch.from_numpy(order[begin : begin + batch_size])
                on_device = rows.to(device)
                began = time.perf_counter()
                with torch.enable_grad():
                    if embedded is not None:
                        features = model.encode_embedded(embedded[on_device], below)
                    elif below:
                        with torch.no_grad():
                            lower = model.embed_images(images[rows], below)
                        features = model.encode_embedded(lower, below)
                    else:
                        features = model.encode_images(images[rows])
                    loss = weighted_cross_entropy(
                        features,
                        anchor_rows,
                        all_labels[on_device],
                        all_weights[on_device],
                        logit_scale,
                        mean_weight,
                    )
                    step.zero_grad(set_to_none=True)
                    loss.backward()
                if not torch.isfinite(loss):
                    raise InputError(
                        f"the re-alignment loss became {loss.item()} in epoch {epoch + 1}: "
                        "lower the warm-up learning rate or check the checkpoint"
                    )
                step.step()
                total += loss.item() * len(rows)
                if forecast is not None:
                    forecast(steps * (time.perf_counter() - began))
                    forecast = None
            if after_epoch is not None and after_epoch(epoch, total / len(order), step):
                return


@torch.no_grad()
def _embedded(
    model: Trainable, images: torch.Tensor, batch_size: int, below: int
) -> torch.Tensor | None:
    """All images as far as the first trained LayerNorm; None when that is too much to keep."""
    room = LOWER_BYTES if below else EMBEDDED_BYTES
    if not len(images) or model.embed_images(images[:1]).nbytes * len(images) > room:
        return None
    parts = [
        model.embed_images(images[begin : begin + batch_size], below)
        for begin in range(0, len(images), batch_size)
    ]
    return torch.cat(parts)


def continual_step(
    model: Trainable,
    optimiser: torch.optim.Optimizer,
    images: torch.Tensor,
    anchors: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    *,
    logit_scale: float,
) -> None:
    """One step of Eq. 3 on a streaming batch (the continual ablation)."""
    if np.sum(weights) <= 0:
        return
    parameters = list(model.norm_parameters("image").values())
    device = parameters[0].device
    with torch.no_grad():
        embedded = model.embed_images(images)
    with _training(parameters), torch.enable_grad():
        loss = weighted_cross_entropy(
            model.encode_embedded(embedded),
            torch.from_numpy(anchors).to(device),
            torch.from_numpy(np.asarray(labels, np.int64)).to(device),
            torch.from_numpy(np.asarray(weights, np.float32)).to(device),
            logit_scale,
            float(np.mean(weights)),
        )
        if not torch.isfinite(loss):
            raise InputError(
                f"the loss of continual adaptation became {loss.item()}: lower continual_lr"
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()


@contextmanager
def _training(parameters: list[torch.nn.Parameter]) -> Iterator[None]:
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(False)
            parameter.grad = None
