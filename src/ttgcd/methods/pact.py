"""PACT: re-align the encoder once, then assign and update prototypes as the stream goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer, Category
from ttgcd.methods.base import Task, features_of
from ttgcd.methods.buffered import Buffered
from ttgcd.methods.optimiser_state import load_optimiser_arrays, optimiser_arrays
from ttgcd.methods.stage_one import Realignment, StageOne, check_choice
from ttgcd.methods.zero_shot import text_says
from ttgcd.prototypes.bank import PrototypeBank
from ttgcd.prototypes.seeding import best_novel
from ttgcd.storage.state import State

if TYPE_CHECKING:
    import torch

    from ttgcd.streams.base import Batch
    from ttgcd.vlm.base import Trainable


@dataclass(kw_only=True)
class Pact(Realignment, Buffered):
    """The method of the paper; the defaults are its configuration (Table 9).

    Parameters
    ----------
    warmup, epochs, lr, optimiser, realign_batch_size, normaliser, realign_depth, early_stop
        Stage one (``Realignment``).
    evidence_min
        e_min: the evidence from which a known class takes part in assignments (Eq. 8).
    known_rate, novel_rate
        Rates of the prototype updates (Eq. 10 and Eq. 11).
    buffer_labels
        How the buffer's own samples are answered once the warm-up is over: "zero-shot" keeps the
        text label, "novel-or-zero-shot" makes a sample novel when a novel prototype wins and keeps
        the text label otherwise, "nearest" is plain Eq. 9.
    known_prototypes
        "text" is the ablation that puts the anchors in the prototypes' place.
    seed_candidates, refine_iterations, seed_restarts
        Better seeds than the paper's single draw: greedy k-means++ with so many candidates, Lloyd
        steps on the buffer, the best of so many tries.
    continual_lr
        Above 0, goes on training on every streaming batch, with the same kind of ``optimiser``
        (an ablation).
    """

    name: ClassVar[str] = "pact"
    trains: ClassVar[str] = "image LayerNorm"
    exact: ClassVar[bool] = True

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
        super().__post_init__()
        for field in ("seed_candidates", "seed_restarts"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be 1 or more, got {getattr(self, field)}")
        for field in ("refine_iterations", "evidence_min", "continual_lr"):
            if not getattr(self, field) >= 0:
                raise InputError(f"{field} must be 0 or more, got {getattr(self, field)}")
        for field in ("known_rate", "novel_rate"):
            if not 0 < getattr(self, field) <= 1:
                raise InputError(f"{field} must lie in (0, 1], got {getattr(self, field)}")
        labels = ("zero-shot", "novel-or-zero-shot", "nearest")
        check_choice("buffer_labels", self.buffer_labels, labels)
        check_choice("known_prototypes", self.known_prototypes, ("image", "text"))

    # -- the stream ---------------------------------------------------------------------------

    def start(self, task: Task) -> None:
        super().start(task)
        self.bank: PrototypeBank | None = None
        self._stage_one = StageOne(self)
        self._continual: tuple[Trainable, torch.optim.Optimizer] | None = None
        self._first_prototypes = np.zeros((0, task.anchors.shape[1]), np.float32)
        self._named: dict[int, np.ndarray] = {}
        self._named_task = task

    def promote(self, named: Mapping[int, np.ndarray]) -> bool:
        """A named category is a known class that has its prototype already: its name competes for
        the text labels (Eq. 1), and its prototype follows the samples that it wins (Eq. 10)."""
        task, last = self.task, self.task.n_known + self.n_novel
        self._named = {c: text for c, text in named.items() if task.n_known <= c < last}
        names = tuple(f"named {category}" for category in self._named)
        anchors = [task.anchors, *(text[None] for text in self._named.values())]
        self._named_task = replace(
            task, known=task.known + names, anchors=np.concatenate(anchors).astype(np.float32)
        )
        return True

    @property
    def wants_images(self) -> bool:
        if self.task.vlm is None:
            return False
        return self.continual_lr > 0 or (self.epochs > 0 and not self.begun)

    def norms(self) -> Mapping[str, np.ndarray] | None:
        return self._stage_one.norms if self.begun else None

    # -- stage one: buffer, re-alignment, prototypes ------------------------------------------

    def end_warmup(self) -> Answer:
        # The buffer's text labels and margins stay those of the pretrained encoder.
        text = text_says(self.task, np.concatenate([features_of(b) for b in self._buffer]))
        features = self.begin(self._buffer)
        assert self.bank is not None
        answer = self.rows(0, features, self.bank.similarities(features), text)
        labels = text[0]
        keep_text = {
            "zero-shot": np.ones(len(labels), bool),
            "novel-or-zero-shot": answer.category < self.task.n_known,
            "nearest": np.zeros(len(labels), bool),
        }[self.buffer_labels]
        answer.category[keep_text] = labels[keep_text]
        answer.score[keep_text] = np.einsum(
            "nd,nd->n", features[keep_text], self.bank.known[labels[keep_text]]
        )
        self.begun, self._buffer = True, []
        self._stage_one.optimiser = {}
        return replace(answer, norms=self._stage_one.norms)

    def begin(self, buffer: list[Batch]) -> np.ndarray:
        """Re-align, encode the buffer again if that changed the encoder, build the prototypes.

        Returns the buffer's features under the encoder that is used from now on.
        """
        features = np.concatenate([features_of(batch) for batch in buffer])
        labels, margins = text_says(self.task, features)
        images = [batch.images for batch in buffer if batch.images is not None]
        if images and self.epochs:
            import torch

            stage, whole = self._stage_one, torch.cat(images)
            keep, instead = self._checkpoint, "`epochs=0` leaves it out"
            stage.run(self.task, self.caller, whole, labels, margins, keep, instead)
            if stage.norms is not None:
                features = self.task.encoder(stage.norms)(whole)
        self.bank = self._build_bank(features, labels, margins)
        self._first_prototypes = self.prototypes()
        return features

    def after_warmup(self, rest: Batch) -> Batch:
        norms = self._stage_one.norms
        if norms is None or rest.images is None:
            return rest
        return replace(rest, features=self.task.encoder(norms)(rest.images))

    def _checkpoint(self) -> None:
        self.caller.checkpoint(self.state_dict())

    def _build_bank(
        self, features: np.ndarray, labels: np.ndarray, margins: np.ndarray
    ) -> PrototypeBank:
        """Known prototypes (Eq. 5), then novel seeds (Eq. 6-7)."""
        bank = PrototypeBank.from_buffer(
            features, labels, margins, self.task.n_known, self.evidence_min
        )
        if self.known_prototypes == "text":
            always = np.full(self.task.n_known, np.inf)
            bank = PrototypeBank(self.task.anchors, always, bank.novel, self.evidence_min)
        bank.novel = best_novel(
            features,
            bank.known[bank.active],
            self.n_novel,
            np.random.default_rng([self.task.seed, 0x5EED]),
            candidates=self.seed_candidates,
            iterations=self.refine_iterations,
            restarts=self.seed_restarts,
        )
        return bank

    # -- stage two: assign, then update -------------------------------------------------------

    def learn(self, batch: Batch, warming: bool = False) -> Answer:
        assert self.bank is not None
        features = features_of(batch)
        labels, margins = text = text_says(self._named_task, features)
        answer = self.rows(batch.start, features, self.bank.similarities(features), text)
        self.bank.update(
            features,
            labels,
            margins,
            answer.category,
            self.known_rate,
            self.novel_rate,
            update_known=self.known_prototypes == "image",
            named=[category - self.task.n_known for category in self._named],
        )
        if self.continual_lr > 0 and batch.images is not None:
            answer = replace(answer, norms=self._continue(batch.images, labels, margins))
        return answer

    def _continue(
        self, images: torch.Tensor, labels: np.ndarray, margins: np.ndarray
    ) -> Mapping[str, np.ndarray]:
        """One more step of training; the norms for the next batch."""
        from ttgcd.methods.realign import continual_step, make_optimiser

        stage = self._stage_one
        if self._continual is None:
            assert self.task.vlm is not None
            model = self.task.vlm.trainable()
            if stage.norms is not None:
                model.load_norms(stage.norms)
            parameters = list(model.norm_parameters("image").values())
            optimiser = make_optimiser(self.optimiser, parameters, self.continual_lr)
            load_optimiser_arrays(optimiser, stage.optimiser)
            self._continual = model, optimiser
        model, optimiser = self._continual
        continual_step(
            model,
            optimiser,
            images,
            self._named_task.anchors,
            labels,
            margins,
            logit_scale=self.task.logit_scale,
        )
        norms, stage.optimiser = model.norm_arrays(), optimiser_arrays(optimiser)
        stage.norms = norms
        return norms

    # -- answers ------------------------------------------------------------------------------

    def answer(self, start: int, features: np.ndarray) -> Answer:
        """Nearest prototype (Eq. 9); the text label while there is no prototype at all."""
        assert self.bank is not None
        return self.rows(start, features, self.bank.similarities(features))

    def prototypes(self) -> np.ndarray:
        if self.bank is None:
            return np.zeros_like(self.task.anchors)
        return self.bank.prototypes.copy()

    def categories(self) -> list[Category]:
        records = super().categories()
        if self.bank is None:
            return records
        for k, (evidence, active) in enumerate(zip(self.bank.evidence, self.bank.active)):
            said = float(evidence) if np.isfinite(evidence) else None
            records[k] = replace(records[k], evidence=said, active=bool(active))
        born = min(self.warmup, self.seen) - 1  # they are seeded when the buffer is full
        return [r if r.kind == "known" else replace(r, born_at=born) for r in records]

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
            "realign_losses": [float(loss) for loss in self._stage_one.losses],
        }

    # -- copies that went different ways (engines/rounds.py) ----------------------------------

    @property
    def mergeable(self) -> bool:
        return self.begun and self.continual_lr == 0

    def merge(self, shards: Sequence[State], samples: int) -> None:
        """Take in what copies of this state have learned from ``samples`` further samples."""
        assert self.bank is not None
        learned = [
            PrototypeBank(
                state.arrays["learned/known_prototypes"],
                state.arrays["learned/evidence"],
                state.arrays["learned/novel_prototypes"],
                self.evidence_min,
            )
            for state in shards
        ]
        self.bank = self.bank.merged(learned)
        self.seen += samples

    # -- memory -------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """The buffer's state, the norms so far and where the training stands."""
        state = super().state_dict()
        trained = self._stage_one.state()
        state.arrays.update(trained.arrays)
        state.values.update(trained.values)
        if self._named:
            state.values["named"] = list(self._named)
            state.arrays["named/anchors"] = np.stack(list(self._named.values()))
        return state

    def learned_arrays(self) -> dict[str, np.ndarray]:
        assert self.bank is not None
        return {
            "known_prototypes": self.bank.known.copy(),
            "evidence": self.bank.evidence,
            "novel_prototypes": self.bank.novel.copy(),
            "first_prototypes": self._first_prototypes,
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._stage_one.load(state.arrays, state.values)
        if named := state.values.get("named", ()):
            self.promote(dict(zip(named, state.arrays["named/anchors"])))

    def load_learned(self, arrays: dict[str, np.ndarray]) -> None:
        self.bank = PrototypeBank(
            arrays["known_prototypes"],
            arrays["evidence"],
            arrays["novel_prototypes"],
            self.evidence_min,
        )
        self._first_prototypes = arrays["first_prototypes"]
