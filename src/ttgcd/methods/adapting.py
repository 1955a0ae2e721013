"""What the five "++" methods share: split a batch, take the method's steps, answer.

A method file holds its loss, its parameters and its defaults.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.methods.base import Task
from ttgcd.methods.optimiser_state import load_optimiser_arrays, optimiser_arrays
from ttgcd.methods.split import Look, SplitThenCluster
from ttgcd.prototypes.mixture import known_posterior
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch
    from ttgcd.vlm.base import Tower

# Norm parameters in a saved state: the image tower's under the same names as PACT's.
_PREFIX = {"image": "norm/", "text": "text_norm/"}


@dataclass(frozen=True)
class Forward:
    """One pass of a batch through the current model."""

    raw: torch.Tensor  # (n, d) image features, not normalised
    features: torch.Tensor  # (n, d) unit rows
    anchors: torch.Tensor  # (K, d) unit rows
    logits: torch.Tensor  # (n, K) scaled cosines

    @classmethod
    def of(cls, raw: torch.Tensor, anchors: torch.Tensor, logit_scale: float) -> Forward:
        features = F.normalize(raw, dim=-1)
        return cls(raw, features, anchors, logit_scale * features @ anchors.T)


@dataclass(frozen=True)
class Split:
    """The mixture's verdict: a hard mask, and the posterior of being known."""

    known: torch.Tensor
    posterior: torch.Tensor


@dataclass(kw_only=True)
class TestTimeAdaptation(SplitThenCluster):
    """Adapts LayerNorm parameters on every batch.

    ``split_features`` says whether the mixture sees the features of the current model, before the
    step, or of the pretrained one. ``reencode_novel`` keeps the novel images and clusters their
    features under the final model instead of those computed when they passed.
    """

    __test__ = False  # not a test case, whatever the name suggests to pytest

    trains: ClassVar[str] = "image LayerNorm"
    towers: ClassVar[tuple[Tower, ...]] = ("image",)
    optimiser: ClassVar[Literal["adam", "adamw"]] = "adam"
    #: The loss compares with the pretrained model.
    uses_frozen: ClassVar[bool] = False
    #: The forward that splits the batch is also the one that learns.
    splits_with_gradient: ClassVar[bool] = True

    lr: float = 1e-3
    weight_decay: float = 0.0
    steps: int = 1
    split_features: Literal["adapted", "frozen"] = "adapted"
    reencode_novel: bool = False

    def __post_init__(self) -> None:
        if not self.lr >= 0 or not self.weight_decay >= 0:
            raise InputError(
                f"lr and weight_decay must be 0 or more, got {self.lr} and {self.weight_decay}"
            )
        if self.steps < 1:
            raise InputError(f"steps must be 1 or more, got {self.steps}")
        if self.split_features not in ("adapted", "frozen"):
            raise InputError(
                f"split_features must be 'adapted' or 'frozen', got {self.split_features!r}"
            )

    @abstractmethod
    def adapt(
        self, embedded: torch.Tensor, first: Forward, split: Split, frozen: Forward | None
    ) -> Forward:
        """Take the steps, given the forward that split the batch; return the one that answers.

        ``embedded`` is what the first LayerNorm reads of the batch: no step changes it.
        """

    # -- the stream ---------------------------------------------------------------------------

    @property
    def wants_features(self) -> bool:
        return False  # they are those of its own model

    @property
    def wants_images(self) -> bool:
        return True

    def start(self, task: Task) -> None:
        if task.vlm is None:
            raise InputError(
                f"{self.name} trains the image encoder and cannot run on embeddings: give images "
                "and a model, or choose a method that keeps the encoder (zero-shot+kmeans, hilo++)"
            )
        super().start(task)
        self.model = task.vlm.trainable()
        needs_frozen = self.uses_frozen or self.split_features == "frozen"
        self._pretrained = task.vlm.trainable() if needs_frozen else None  # nobody trains it
        self.skipped = {"nothing_known": 0, "not_finite": 0}
        self._parameters = [
            parameter
            for tower in self.towers
            for parameter in self.model.norm_parameters(tower).values()
        ]
        self._device = self._parameters[0].device
        self._text = torch.from_numpy(task.anchors.astype(np.float32)).to(self._device)
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[self.optimiser]
        self._optimiser = kind(self._parameters, lr=self.lr, weight_decay=self.weight_decay)

    def look(self, batch: Batch) -> Look:
        embedded = self._embedded(batch)
        frozen = self._frozen(embedded)
        with self._training():
            with torch.set_grad_enabled(self.splits_with_gradient):
                first = self.forward(embedded)
            split = self._split(first, frozen)
            last = self.adapt(embedded, first, split, frozen)
        return Look(
            last.features.detach().cpu().numpy(),
            last.anchors.detach().cpu().numpy(),
            split.known.cpu().numpy(),
        )

    def glance(self, batch: Batch) -> Look:
        embedded = self._embedded(batch)
        with torch.no_grad():
            frozen = self._frozen(embedded)
            now = self.forward(embedded)
            split = self._split(now, frozen)
            now = self.answering(now)
        return Look(
            now.features.cpu().numpy(), now.anchors.cpu().numpy(), split.known.cpu().numpy()
        )

    def descend(self, loss: torch.Tensor | None) -> None:
        """One optimiser step, left out and counted when there is nothing finite to follow."""
        if loss is None:
            self.skipped["nothing_known"] += 1
            return
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        if not torch.isfinite(loss) or not all(torch.isfinite(g).all() for g in gradients):
            self.skipped["not_finite"] += 1
            return
        self._optimiser.step()

    def forward(self, embedded: torch.Tensor) -> Forward:
        raw = self.model.encode_embedded(embedded, normalize=False)
        return Forward.of(raw, self.text_anchors(), self.task.logit_scale)

    def text_anchors(self) -> torch.Tensor:
        """Anchors of the current model (K, d): for the split, the loss and the answers."""
        return self._text

    def answering(self, forward: Forward) -> Forward:
        """The same pass against the anchors that answer, where those are others."""
        return forward

    def current_anchors(self) -> np.ndarray:
        with torch.no_grad():
            empty = torch.zeros((0, self.task.anchors.shape[1]), device=self._device)
            forward = Forward.of(empty, self.text_anchors(), self.task.logit_scale)
            return self.answering(forward).anchors.cpu().numpy()

    def keep(self, batch: Batch, novel: np.ndarray) -> dict[str, np.ndarray]:
        if not self.reencode_novel:
            return {}
        return {"images": self._images(batch).cpu().numpy()[novel]}

    def novel_features(self, kept: dict[str, np.ndarray]) -> np.ndarray:
        if not self.reencode_novel or not len(kept["images"]):
            return kept["features"]
        return self.task.encoder(self.model.norm_arrays())(torch.from_numpy(kept["images"]))

    def health(self) -> dict[str, Any]:
        return {**super().health(), "skipped_steps": dict(self.skipped)}

    # -- inside -------------------------------------------------------------------------------

    def _images(self, batch: Batch) -> torch.Tensor:
        if batch.images is None:
            raise InputError(
                f"{self.name} trains the image encoder and needs images, but the stream holds "
                "embeddings: choose a method that keeps the encoder (zero-shot+kmeans, hilo++)"
            )
        return batch.images

    def _embedded(self, batch: Batch) -> torch.Tensor:
        with torch.no_grad():
            return self.model.embed_images(self._images(batch))

    def _split(self, now: Forward, frozen: Forward | None) -> Split:
        forward = frozen if frozen is not None and self.split_features == "frozen" else now
        best = (forward.logits.detach().max(dim=1).values / self.task.logit_scale).cpu().numpy()
        posterior = torch.from_numpy(known_posterior(best, self.task.seed))
        return Split(
            known=(posterior >= 0.5).to(self._device),
            posterior=posterior.to(self._device, forward.logits.dtype),
        )

    def _frozen(self, embedded: torch.Tensor) -> Forward | None:
        """A pass through the pretrained model, if one is needed."""
        if self._pretrained is None:
            return None
        with torch.no_grad():
            raw = self._pretrained.encode_embedded(embedded, normalize=False)
            return Forward.of(raw, self._text, self.task.logit_scale)

    @contextmanager
    def _training(self) -> Iterator[None]:
        for parameter in self._parameters:
            parameter.requires_grad_(True)
        try:
            with torch.enable_grad():
                yield
        finally:
            for parameter in self._parameters:
                parameter.requires_grad_(False)
                parameter.grad = None

    # -- memory -------------------------------------------------------------------------------

    def state_dict(self) -> State:
        state = super().state_dict()
        for tower in self.towers:
            for key, array in self.model.norm_arrays(tower).items():
                state.arrays[_PREFIX[tower] + key] = array
        state.arrays.update(optimiser_arrays(self._optimiser))
        state.values["skipped_steps"] = dict(self.skipped)
        return state

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        for tower in self.towers:
            prefix = _PREFIX[tower]
            norms = {
                key.removeprefix(prefix): array
                for key, array in state.arrays.items()
                if key.startswith(prefix)
            }
            self.model.load_norms(norms, tower)
        load_optimiser_arrays(self._optimiser, state.arrays)
        self.skipped = dict(state.values["skipped_steps"])


@dataclass(kw_only=True)
class OneLoss(TestTimeAdaptation):
    """Steps down one objective on the whole batch, from the forward that split it."""

    @abstractmethod
    def loss(self, forward: Forward, split: Split, frozen: Forward | None) -> torch.Tensor | None:
        """The objective; None when the batch has nothing to learn from."""

    def adapt(
        self, embedded: torch.Tensor, first: Forward, split: Split, frozen: Forward | None
    ) -> Forward:
        """The forward that answers is the one before the last step."""
        forward = first
        for step in range(self.steps):
            if step:
                forward = self.forward(embedded)
            self.descend(self.loss(forward, split, frozen))
        return forward
