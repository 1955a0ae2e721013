"""The contract that every method keeps: what it is told, what it answers, what it remembers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.methods.realign import Realigned
    from ttgcd.streams.base import Batch
    from ttgcd.vlm.base import VLM

DEFAULT_TEMPLATES = ("a photo of a {}.",)


def _ignore_progress(phase: str, done: int, total: int) -> None:
    """Default of ``Task.progress``."""


def _ignore_checkpoint(state: State) -> None:
    """Default of ``Task.checkpoint``."""


@dataclass(frozen=True)
class Task:
    """What a method is told about a stream. Labels are never part of it.

    ``anchors`` are the unit text embeddings z_k of the known classes, ``novel`` is L.
    ``vlm`` is None when the stream holds precomputed embeddings. ``realigned`` keeps finished
    re-alignments by the hash of their inputs, for runs that differ only in what comes after.
    """

    known: tuple[str, ...]
    anchors: np.ndarray
    novel: int
    vlm: VLM | None = None
    logit_scale: float = 100.0
    seed: int = 0
    templates: tuple[str, ...] = DEFAULT_TEMPLATES
    progress: Callable[[str, int, int], None] = _ignore_progress
    checkpoint: Callable[[State], None] = _ignore_checkpoint
    realigned: MutableMapping[str, Realigned] | None = None

    def __post_init__(self) -> None:
        if len(self.known) == 0:
            raise InputError("no known class: name at least one class, as in `known=cat,dog`")
        if self.novel < 0:
            raise InputError(f"the number of novel classes must be 0 or more, got {self.novel}")
        if self.anchors.ndim != 2 or len(self.anchors) != len(self.known):
            raise InputError(
                f"anchors have shape {self.anchors.shape} but {len(self.known)} known classes "
                "are named: give one row a class, in the same order"
            )
        if not np.isfinite(self.anchors).all():
            raise InputError("anchors contain NaN or infinite values: encode the names again")

    @property
    def n_known(self) -> int:
        return len(self.known)


class Method(ABC):
    """One way to name and group a stream.

    Subclasses are dataclasses: the constructor is the whole configuration. ``start`` resets the
    encoder and all state, so one object serves many streams.
    """

    name: ClassVar[str]
    #: "arrival": ids are final within the warm-up; "end": only after the whole stream.
    answers: ClassVar[Literal["arrival", "end"]] = "arrival"
    #: passes over the data that the method needs.
    passes: ClassVar[int] = 1
    #: which parameters of the encoder the method changes.
    trains: ClassVar[str] = "nothing"

    task: Task

    @abstractmethod
    def start(self, task: Task) -> None:
        """Begin a new stream; call ``super().start(task)`` first."""
        self.task = task
        if task.vlm is not None:
            task.vlm.reset()

    @abstractmethod
    def observe(self, batch: Batch) -> Answer:
        """Answer for a batch and learn from it; may revise earlier rows."""

    @abstractmethod
    def finish(self) -> Answer:
        """The stream is over: the last revisions."""

    @abstractmethod
    def predict(self, batch: Batch) -> Answer:
        """Answer without learning: state is left as it was."""

    @abstractmethod
    def state_dict(self) -> State:
        """Everything needed to go on."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Go on from ``state``; call ``start`` first."""

    def prototypes(self) -> np.ndarray | None:
        """One unit row a category (K + L, d), zero where a category has none; None if the method
        keeps no prototypes."""
        return None

    def health(self) -> dict[str, Any]:
        """Facts that tell whether the run is going well."""
        return {}

    def config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        assert is_dataclass(self), "a Method is a dataclass"
        return {f.name: asdict(self)[f.name] for f in fields(self) if f.init}

    def described(self, seen: int) -> dict[str, Any]:
        """The values that every state carries."""
        return {
            "method": self.name,
            "config": self.config(),
            "seen": seen,
            "known": list(self.task.known),
            "logit_scale": self.task.logit_scale,
            "seed": self.task.seed,
        }

    def check_described(self, values: dict[str, Any]) -> None:
        """An InputError when a state was made by another method or configuration."""
        if values.get("method") != self.name:
            raise InputError(
                f"the saved state is of the method {values.get('method')!r}, not of {self.name!r}"
            )
        if values["config"] != self.config():
            raise InputError(
                f"the saved state was made with another configuration of {self.name}: "
                "start again, or give the options it was made with"
            )

    def encode(self, batch: Batch) -> np.ndarray:
        """Unit features of a batch under the current encoder, without gradient."""
        if batch.features is not None:
            return np.asarray(batch.features, np.float32)
        features = encode_images(self.task, batch.images)
        broken = np.flatnonzero(~np.isfinite(features).all(axis=1))
        if len(broken):  # before they get into a buffer, where nobody knows whose they are
            raise InputError(
                f"NaN or infinite features for {len(broken)} samples from {batch.ids[broken[0]]!r} "
                f"on, in the batch of samples {batch.start} to {batch.start + len(batch) - 1}: the "
                "model's weights may be damaged, or its number format may overflow (use float32)"
            )
        return features


def category_name(known: Sequence[str], category: int) -> str:
    """A known class's own name; "novel 1", "novel 2", ... for the others."""
    return known[category] if category < len(known) else f"novel {category - len(known) + 1}"


def encode_images(task: Task, images: Any, batch_size: int = 128) -> np.ndarray:
    """Unit image features under the current encoder, without gradient, in chunks."""
    import torch

    if task.vlm is None:
        raise InputError("images were given but no model: pass a model, or embeddings instead")
    with torch.inference_mode():
        parts = [
            task.vlm.encode_images(images[i : i + batch_size]).float().cpu().numpy()
            for i in range(0, len(images), batch_size)
        ]
    return np.concatenate(parts)
