"""The contract that every method keeps: what it is told, what it answers, what it remembers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer, Category
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.methods.realign import Realigned
    from ttgcd.streams.base import Batch
    from ttgcd.vlm.base import VLM
    from ttgcd.vlm.encoder import Encoder
    from ttgcd.vlm.precision import Precision

DEFAULT_TEMPLATES = ("a photo of a {}.",)
#: Samples from whose features the number of novel categories is estimated, where it is not given
#: and a method has no warm-up of its own.
COUNTED = 1024


@dataclass(frozen=True)
class Task:
    """What a method is told about a stream: facts only. Labels are never part of it.

    Parameters
    ----------
    known
        Names of the known classes; class k has the category id k. None at all is fine for methods
        that group without names (``Method.needs_names``).
    anchors
        Unit text embeddings z_k of the known classes, (K, d).
    novel
        L, the number of novel categories; None when it is to be found.
    vlm
        The pretrained model; None when the stream holds precomputed embeddings.
    logit_scale
        Inverse temperature of the text logits (Eq. 1).
    seed
        Decides every random draw of the method.
    templates
        Prompts behind the anchors.
    words, word_embeddings
        A vocabulary of nouns and their unit text embeddings (V, d), for methods that use one. Words
        without embeddings are for the model to encode; embeddings without words have no names.
    precision
        How images are encoded once no gradient is needed.
    """

    known: tuple[str, ...]
    anchors: np.ndarray
    novel: int | None
    vlm: VLM | None = None
    logit_scale: float = 100.0
    seed: int = 0
    templates: tuple[str, ...] = DEFAULT_TEMPLATES
    words: tuple[str, ...] = ()
    word_embeddings: np.ndarray | None = None
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        if self.novel is not None and self.novel < 0:
            raise InputError(f"the number of novel classes must be 0 or more, got {self.novel}")
        check_something_to_find(self.known, self.novel)
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

    def encoder(self, norms: Mapping[str, np.ndarray] | None = None) -> Encoder:
        """An encoder of the task's model, with the given LayerNorm parameters or its own."""
        if self.vlm is None:
            raise InputError("images were given but no model: pass a model, or embeddings instead")
        return self.vlm.encoder(norms, self.precision)


class Caller:
    """Whom a method may turn to while it is busy within one batch. This one does not listen."""

    #: Whether the stream can be handed over again from its start. If not, a method in its warm-up
    #: keeps the buffer in its state.
    replays: bool = True
    #: Finished re-alignments by the hash of their inputs, for runs that differ only in what comes
    #: after.
    realigned: MutableMapping[str, Realigned] | None = None

    def progress(self, phase: str, done: int, total: int) -> None:
        """So much of a long phase is done."""

    def checkpoint(self, state: State) -> None:
        """The method could go on from here."""

    def say(self, text: str) -> None:
        """What a user should know now, before it is over."""

    def all_cores(self) -> AbstractContextManager[object]:
        """Within it large matrix products may take every core that nobody else needs."""
        return nullcontext()


class Method(ABC):
    """One way to name and group a stream.

    Subclasses are dataclasses: the constructor is the whole configuration. Two verbs make a method,
    ``observe`` and ``predict``; one object serves many streams, one after the other.

    Attributes
    ----------
    task
        What the method was told by ``start``.
    caller
        Whom to tell of progress within a batch; set before ``start`` by who drives the method.
    novel
        L once it is known, given or settled by ``settle``; None until then.
    seen
        Samples observed so far; ``observe`` adds the batch's.
    """

    name: ClassVar[str]
    #: "arrival": ids are final within the warm-up; "end": only after the whole stream.
    answers: ClassVar[Literal["arrival", "end"]] = "arrival"
    #: passes over the data that the method needs.
    passes: ClassVar[int] = 1
    #: which parameters of the encoder the method changes, in a copy of its own.
    trains: ClassVar[str] = "nothing"
    #: Whether it can do nothing without known classes. One that groups without names says False.
    needs_names: ClassVar[bool] = True

    task: Task
    caller: Caller = Caller()
    novel: int | None
    seen: int

    def start(self, task: Task) -> None:
        """Begin a new stream; call ``super().start(task)`` first."""
        check_names_wanted(type(self), task.known)
        self.task = task
        self.novel = task.novel
        self.seen = 0

    @abstractmethod
    def observe(self, batch: Batch) -> Answer:
        """Answer for a batch and learn from it; may revise earlier rows."""

    @abstractmethod
    def predict(self, batch: Batch) -> Answer:
        """Answer without learning: state is left as it was."""

    def finish(self) -> Answer:
        """The stream is over: the last revisions."""
        return Answer.empty()

    def revise(self, start: int, features: np.ndarray) -> Answer:
        """New answers for samples seen before; called after an answer that asks to ``reassign``.

        Pure: several threads may ask, each for a block of its own.
        """
        raise NotImplementedError(f"{self.name} asked for a revision that it does not do")

    # -- what it wants ------------------------------------------------------------------------

    @property
    def wants_features(self) -> bool:
        """Whether the next batch is to carry features."""
        return True

    @property
    def wants_images(self) -> bool:
        """Whether the next batch is to carry images besides; streams of embeddings have none."""
        return False

    @property
    def wants_count(self) -> bool:
        """Whether the method needs L and nobody has told it yet."""
        return self.novel is None

    @property
    def counts_on(self) -> int:
        """From how many samples L is estimated: it must be settled when they have been seen."""
        return getattr(self, "warmup", COUNTED)

    def settle(self, novel: int) -> None:
        """L has been estimated."""
        self.novel = novel

    def promote(self, named: Mapping[int, np.ndarray]) -> bool:
        """A user has named these categories: ids and the unit text embeddings of their names.

        Said once, between ``load_state_dict`` and the first sample of a stream that goes on. A
        method that knows classes by text may know these by their names from here on; what it makes
        of it is part of its state. Ids stay. Returns whether it uses the names; by default it does
        not.
        """
        return False

    @property
    def n_novel(self) -> int:
        """L, or 0 as long as it is not known."""
        return self.novel or 0

    def norms(self) -> Mapping[str, np.ndarray] | None:
        """The LayerNorm parameters under which the stream is to be encoded; None: pretrained."""
        return None

    # -- what it found ------------------------------------------------------------------------

    def prototypes(self) -> np.ndarray | None:
        """One unit row a category (K + L, d), zero where a category has none; None if the method
        keeps no prototypes."""
        return None

    def categories(self) -> list[Category]:
        """All categories so far, in the order of their ids."""
        prototypes = self.prototypes()
        known = self.task.known
        least = max(1, self.task.n_known + self.n_novel)
        count = least if prototypes is None else max(least, len(prototypes))
        return [named_category(known, category) for category in range(count)]

    def health(self) -> dict[str, Any]:
        """Facts that tell whether the run is going well."""
        return {}

    # -- what it remembers --------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        assert is_dataclass(self), "a Method is a dataclass"
        return {f.name: asdict(self)[f.name] for f in fields(self) if f.init}

    def state_dict(self) -> State:
        """Everything needed to go on: the attributes that are not configuration, as long as they
        are arrays or plain values. A method that keeps other things says how to store them."""
        arrays: dict[str, np.ndarray] = {"anchors": self.task.anchors.astype(np.float32)}
        values: dict[str, Any] = {}
        for name, value in self._learned().items():
            if isinstance(value, np.ndarray):
                arrays[name] = value.copy()
            elif isinstance(value, np.generic):
                values[name] = value.item()
            elif isinstance(value, (bool, int, float, str, list, dict, type(None))):
                values[name] = value
            else:
                raise TypeError(
                    f"{type(self).__name__}.{name} is a {type(value).__name__}: keep arrays and "
                    "plain values only, or write state_dict and load_state_dict"
                )
        return State(arrays, {**self.described(self.seen), "attributes": values})

    def load_state_dict(self, state: State) -> None:
        """Go on from ``state``; call ``start`` first."""
        self.check_described(state.values)
        for name, value in state.values.get("attributes", {}).items():
            setattr(self, name, value)
        for name, array in state.arrays.items():
            if name != "anchors":
                setattr(self, name, np.array(array))

    def _learned(self) -> dict[str, Any]:
        told = {"task", "caller", "novel", "seen"} | set(self.config())
        return {name: value for name, value in vars(self).items() if name not in told}

    def described(self, seen: int) -> dict[str, Any]:
        """The values that every state carries."""
        return {
            "method": self.name,
            "config": self.config(),
            "seen": seen,
            "known": list(self.task.known),
            "novel": self.novel,
            "logit_scale": self.task.logit_scale,
            "seed": self.task.seed,
        }

    def check_described(self, values: dict[str, Any]) -> None:
        """Take over ``seen`` and L; an InputError when a state was made by another method or
        configuration."""
        if values.get("method") != self.name:
            raise InputError(
                f"the saved state is of the method {values.get('method')!r}, not of {self.name!r}"
            )
        if values["config"] != self.config():
            raise InputError(
                f"the saved state was made with another configuration of {self.name}: "
                "start again, or give the options it was made with"
            )
        self.seen = values["seen"]
        self.novel = values["novel"]


def features_of(batch: Batch) -> np.ndarray:
    """The features of a batch that its caller has encoded."""
    if batch.features is None:
        raise InputError("the batch carries no features: push it through a session")
    return batch.features


def check_names_wanted(
    method: type[Method], known: Sequence[str], called: str | None = None
) -> None:
    """An InputError when a method that lives on names is given none; ``called`` is what the user
    called it."""
    if method.needs_names and not known:
        raise InputError(
            f"{called or method.name!r} needs known names: give them as `known=cat,dog`, or take "
            "`method=scout` instead, which groups without names"
        )


def check_something_to_find(known: Sequence[str], novel: int | None) -> None:
    """An InputError when there is neither a known class nor room for a group."""
    if not known and novel == 0:
        raise InputError(
            "no known names and no novel categories: there is nothing to sort into; name a class, "
            "as in `known=cat,dog`, or ask for groups, `novel=1` or more"
        )


def named_category(known: Sequence[str], category: int) -> Category:
    """A category that has only its id and name so far."""
    kind: Literal["known", "novel"] = "known" if category < len(known) else "novel"
    return Category(category, kind, category_name(known, category))


def category_name(known: Sequence[str], category: int) -> str:
    """A known class's own name; "novel 1", "novel 2", ... for the others. Where nothing is known
    nothing is novel either: "group 1", "group 2", ...."""
    if category < len(known):
        return known[category]
    return f"{'novel' if known else 'group'} {category - len(known) + 1}"
