"""PACT: re-align the encoder once, then assign and update prototypes as the stream goes by."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task, encode_images
from ttgcd.methods.realign import (
    Optimiser,
    Realigned,
    continual_step,
    optimiser_arrays,
    realign,
    realign_key,
)
from ttgcd.prototypes.bank import PrototypeBank
from ttgcd.prototypes.seeding import best_novel
from ttgcd.prototypes.zero_shot import pseudo_labels, zero_shot_probabilities
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch

PRESETS: dict[str, dict[str, Any]] = {
    # The literal method.
    "paper": {},
    # Better seeds: greedy k-means++ and spherical Lloyd steps on the buffer, the best of ten tries.
    "robust": {"seed_candidates": 5, "refine_iterations": 20, "seed_restarts": 10},
}


@dataclass(kw_only=True)
class Pact(Method):
    """The method of the paper; the defaults are its configuration (Table 7).

    ``buffer_labels`` says how the buffer's own samples are answered once the warm-up is over:
    "zero-shot" keeps the text label, "novel-or-zero-shot" makes a sample novel when a novel
    prototype wins and keeps the text label otherwise, "nearest" is plain Eq. 9.
    ``known_prototypes="text"`` is the ablation that puts the anchors in the prototypes' place.
    ``continual_lr`` > 0 goes on training on every streaming batch (an ablation as well).
    """

    name: ClassVar[str] = "pact"
    trains: ClassVar[str] = "image LayerNorm"

    warmup: int = 1024
    epochs: int = 30
    lr: float = 1e-2
    optimiser: Optimiser = "sgd"
    realign_batch_size: int = 128
    evidence_min: float = 1.5
    known_rate: float = 0.05
    novel_rate: float = 0.10
    buffer_labels: Literal["zero-shot", "novel-or-zero-shot", "nearest"] = "novel-or-zero-shot"
    known_prototypes: Literal["image", "text"] = "image"
    seed_candidates: int = 1
    refine_iterations: int = 0
    seed_restarts: int = 1
    continual_lr: float = 0.0

    def __post_init__(self) -> None:
        positive = {"warmup": 2, "realign_batch_size": 1, "seed_candidates": 1, "seed_restarts": 1}
        for field, least in positive.items():
            if getattr(self, field) < least:
                raise InputError(f"{field} must be {least} or more, got {getattr(self, field)}")
        for field in ("epochs", "refine_iterations", "lr", "evidence_min", "continual_lr"):
            if not getattr(self, field) >= 0:
                raise InputError(f"{field} must be 0 or more, got {getattr(self, field)}")
        for field in ("known_rate", "novel_rate"):
            if not 0 < getattr(self, field) <= 1:
                raise InputError(f"{field} must lie in (0, 1], got {getattr(self, field)}")
        choices = {
            "optimiser": ("sgd", "momentum", "adam", "adamw"),
            "buffer_labels": ("zero-shot", "novel-or-zero-shot", "nearest"),
            "known_prototypes": ("image", "text"),
        }
        for field, allowed in choices.items():
            if getattr(self, field) not in allowed:
                raise InputError(
                    f"{field} must be one of {', '.join(allowed)}, got {getattr(self, field)!r}"
                )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Pact:
        """The method under a named configuration, with single fields changed."""
        if name not in PRESETS:
            raise InputError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}")
        return cls(**{**PRESETS[name], **changes})

    # -- the stream ---------------------------------------------------------------------------

    def start(self, task: Task) -> None:
        super().start(task)
        self.bank: PrototypeBank | None = None
        self.losses: list[float] = []
        self._seen = 0
        self._buffer: list[Batch] = []
        self._zero_shot: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._first_epoch = 0
        self._optimiser_arrays: dict[str, np.ndarray] = {}
        self._saved_norms: dict[str, np.ndarray] = {}
        self._first_prototypes = np.zeros((0, task.anchors.shape[1]), np.float32)

    def observe(self, batch: Batch) -> Answer:
        if self.bank is not None:
            return self._stream(batch)
        filling, rest = batch.split(min(len(batch), self.warmup - self._seen))
        provisional = self._fill(filling)
        if self._seen < self.warmup:
            return provisional
        revised = self._end_warmup()
        return Answer.concat([revised, self._stream(rest)]) if len(rest) else revised

    def finish(self) -> Answer:
        if self.bank is None and self._seen > 0:
            return self._end_warmup()
        return Answer.empty()

    def predict(self, batch: Batch) -> Answer:
        features = self.encode(batch)
        labels, margins = self._text_says(features)
        if self.bank is None:
            return self._text_answer(batch, features, labels, margins)
        return self._answer(batch.start, features, labels, margins)

    # -- stage one: buffer, re-alignment, prototypes ------------------------------------------

    def _fill(self, batch: Batch) -> Answer:
        """Keep the samples and answer provisionally with the text label of theta_0 (Eq. 2)."""
        features = self.encode(batch)
        labels, margins = self._text_says(features)
        self._buffer.append(batch)
        self._zero_shot.append((features, labels, margins))
        self._seen += len(batch)
        return self._text_answer(batch, features, labels, margins)

    def _end_warmup(self) -> Answer:
        features, labels, margins = (np.concatenate(part) for part in zip(*self._zero_shot))
        if self.task.vlm is not None:
            images = torch.cat([batch.images for batch in self._buffer if batch.images is not None])
            self._realign(images, labels, margins)
            features = encode_images(self.task, images)
        self.bank = self._build_bank(features, labels, margins)
        self._first_prototypes = self.prototypes()
        answer = self._answer(0, features, labels, margins)
        keep_text = {
            "zero-shot": np.ones(len(labels), bool),
            "novel-or-zero-shot": answer.category < self.task.n_known,
            "nearest": np.zeros(len(labels), bool),
        }[self.buffer_labels]
        answer.category[keep_text] = labels[keep_text]
        answer.score[keep_text] = np.einsum(
            "nd,nd->n", features[keep_text], self.bank.known[labels[keep_text]]
        )
        self._buffer, self._zero_shot = [], []
        self._optimiser_arrays = {}
        return answer

    def _realign(self, images: torch.Tensor, labels: np.ndarray, margins: np.ndarray) -> None:
        """Minimise Eq. 3; pseudo-labels and margins stay those of the pretrained encoder."""
        vlm = self.task.vlm
        assert vlm is not None
        if self.epochs == 0:
            return
        self._restore_norms()
        if margins.sum() <= 0:
            warnings.warn(
                "no sample of the buffer has a confident text label: re-alignment is skipped",
                stacklevel=2,
            )
            return

        def after_epoch(epoch: int, loss: float, optimiser: torch.optim.Optimizer) -> None:
            self.losses.append(loss)
            self._first_epoch = epoch + 1
            self._optimiser_arrays = optimiser_arrays(optimiser)
            self.task.progress("re-align", epoch + 1, self.epochs)
            self.task.checkpoint(self.state_dict())

        settings: dict[str, Any] = {
            "logit_scale": self.task.logit_scale,
            "epochs": self.epochs,
            "lr": self.lr,
            "batch_size": self.realign_batch_size,
            "optimiser": self.optimiser,
            "seed": self.task.seed,
        }
        store = self.task.realigned if self._first_epoch == 0 else None
        key = ""
        if store is not None:
            key = realign_key(vlm, images, self.task.anchors, labels, margins, **settings)
            if (done := store.get(key)) is not None:
                vlm.load_norms(done.norms)
                self.losses, self._first_epoch = list(done.losses), self.epochs
                return
        began = time.perf_counter()
        realign(
            vlm,
            images,
            self.task.anchors,
            labels,
            margins,
            **settings,
            first_epoch=self._first_epoch,
            optimiser_arrays=self._optimiser_arrays,
            after_epoch=after_epoch,
        )
        if store is not None:
            seconds = time.perf_counter() - began
            store[key] = Realigned(vlm.norm_arrays(), list(self.losses), seconds)

    def _build_bank(
        self, features: np.ndarray, labels: np.ndarray, margins: np.ndarray
    ) -> PrototypeBank:
        """Known prototypes (Eq. 5), then novel seeds (Eq. 6-7)."""
        bank = PrototypeBank.from_buffer(
            features, labels, margins, self.task.n_known, self.evidence_min
        )
        if self.known_prototypes == "text":
            bank.known = self.task.anchors.astype(np.float32)
            bank.evidence = np.full(self.task.n_known, np.inf)
        rng = np.random.default_rng([self.task.seed, 0x5EED])
        centres = bank.known[bank.active]
        bank.novel = best_novel(
            features,
            centres,
            self.task.novel,
            rng,
            candidates=self.seed_candidates,
            iterations=self.refine_iterations,
            restarts=self.seed_restarts,
        )
        return bank

    # -- stage two: assign, then update -------------------------------------------------------

    def _stream(self, batch: Batch) -> Answer:
        assert self.bank is not None
        features = self.encode(batch)
        labels, margins = self._text_says(features)
        answer = self._answer(batch.start, features, labels, margins)
        self.bank.update(
            features,
            labels,
            margins,
            answer.category,
            self.known_rate,
            self.novel_rate,
            update_known=self.known_prototypes == "image",
        )
        vlm = self.task.vlm
        if self.continual_lr > 0 and vlm is not None and batch.images is not None:
            continual_step(
                vlm,
                batch.images,
                self.task.anchors,
                labels,
                margins,
                logit_scale=self.task.logit_scale,
                lr=self.continual_lr,
            )
        self._seen += len(batch)
        return answer

    # -- answers ------------------------------------------------------------------------------

    def _text_says(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return pseudo_labels(
            zero_shot_probabilities(features, self.task.anchors, self.task.logit_scale)
        )

    def _text_answer(
        self, batch: Batch, features: np.ndarray, labels: np.ndarray, margins: np.ndarray
    ) -> Answer:
        score = np.einsum("nd,nd->n", features, self.task.anchors[labels])
        return Answer.make(
            batch.start, labels, score, margins, novelty=-score, final=False, features=features
        )

    def _answer(
        self, start: int, features: np.ndarray, labels: np.ndarray, margins: np.ndarray
    ) -> Answer:
        """Nearest prototype (Eq. 9); the text label while there is no prototype at all."""
        assert self.bank is not None
        n_known = self.task.n_known
        cosines = self.bank.similarities(features)
        category = cosines.argmax(axis=1)
        score = cosines.max(axis=1)
        nothing = ~np.isfinite(score)
        category[nothing] = labels[nothing]
        score[nothing] = 0.0
        known_best = cosines[:, :n_known].max(axis=1, initial=-1.0)
        novel_best = cosines[:, n_known:].max(axis=1, initial=-1.0)
        return Answer.make(
            start, category, score, margins, novelty=novel_best - known_best, features=features
        )

    def prototypes(self) -> np.ndarray:
        if self.bank is None:
            return np.zeros_like(self.task.anchors)
        return np.concatenate([self.bank.known, self.bank.novel])

    def health(self) -> dict[str, Any]:
        """Inactive known classes, prototype drift since the warm-up, re-alignment losses."""
        if self.bank is None:
            return {"warmed_up": False}
        first, now = self._first_prototypes, self.prototypes()
        had_one = np.linalg.norm(first, axis=1) > 0
        drift = 1.0 - np.einsum("nd,nd->n", first, now)
        inactive = np.flatnonzero(~self.bank.active)
        return {
            "warmed_up": True,
            "inactive_known": [self.task.known[k] for k in inactive],
            "prototype_drift": [
                float(d) if had else None for d, had in zip(drift, had_one, strict=True)
            ],
            "realign_losses": [float(loss) for loss in self.losses],
        }

    # -- memory -------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Before the warm-up is over the buffer is not part of the state: ``seen`` is 0 and the
        stream is read again from its start; finished re-alignment epochs are kept."""
        arrays: dict[str, np.ndarray] = {"anchors": self.task.anchors.astype(np.float32)}
        if self.task.vlm is not None:
            # Saved ones that were not put back yet (see _restore_norms) come first.
            norms = {**self.task.vlm.norm_arrays("image"), **self._saved_norms}
            arrays.update({f"norm/{key}": array for key, array in norms.items()})
        arrays.update(self._optimiser_arrays)
        if self.bank is not None:
            arrays["known_prototypes"] = self.bank.known
            arrays["evidence"] = self.bank.evidence
            arrays["novel_prototypes"] = self.bank.novel
            arrays["first_prototypes"] = self._first_prototypes
        values = {
            **self.described(0 if self.bank is None else self._seen),
            "phase": "warm-up" if self.bank is None else "stream",
            "epochs_done": self._first_epoch,
            "losses": list(self.losses),
        }
        return State(arrays, values)

    def load_state_dict(self, state: State) -> None:
        arrays, values = state
        self.check_described(values)
        self._first_epoch = values["epochs_done"]
        self.losses = list(values["losses"])
        self._optimiser_arrays = {
            key: array for key, array in arrays.items() if key.startswith("optimiser/")
        }
        self._saved_norms = {
            key.removeprefix("norm/"): array
            for key, array in arrays.items()
            if key.startswith("norm/")
        }
        if values["phase"] == "stream":
            self._restore_norms()
            self._seen = values["seen"]
            self.bank = PrototypeBank(
                np.array(arrays["known_prototypes"]),
                np.array(arrays["evidence"]),
                np.array(arrays["novel_prototypes"]),
                self.evidence_min,
            )
            self._first_prototypes = np.array(arrays["first_prototypes"])

    def _restore_norms(self) -> None:
        """Put saved LayerNorm parameters back, if any were loaded.

        In the warm-up this waits until the buffer has been scored by the pretrained encoder.
        """
        if self.task.vlm is not None and self._saved_norms:
            self.task.vlm.load_norms(self._saved_norms, "image")
            self._saved_norms = {}
