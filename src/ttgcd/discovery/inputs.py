"""From settings and a source to a task: model and anchors."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.sanity import check_count
from ttgcd.discovery.settings import Settings
from ttgcd.errors import InputError
from ttgcd.methods.base import Task
from ttgcd.prototypes.bank import normalise
from ttgcd.report.gallery import SIZE
from ttgcd.report.thumbnails import KeptThumbnails
from ttgcd.storage.state import State
from ttgcd.streams.arrays import Rows
from ttgcd.streams.base import Source
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM

MINI_NOTE = (
    "model 'mini' is the small embedded one: good for trying things out on icons and simple "
    "pictures; for photographs take a real CLIP, e.g. openai/clip-vit-base-patch16"
)
EMBEDDINGS_NOTE = "the source holds embeddings: there is no encoder, re-alignment is skipped"


@dataclass
class Inputs:
    """What a run is made of, besides the method."""

    source: Source
    task: Task
    settings: Settings
    notes: list[str] = field(default_factory=list)
    #: Text embeddings of names that a user gave on an earlier run, by category.
    named: dict[int, np.ndarray] = field(default_factory=dict)
    kept: KeptThumbnails | None = None  # pictures made while the stream is decoded here

    def stream(self, place: int = 0, index: int = 0) -> Stream:
        """The stream from a place on (see ``Stream``)."""
        stream = make_stream(self.source, self.task.vlm, self.settings, place, index)
        if self.source.kind == "images":
            self.kept = self.kept or KeptThumbnails(SIZE)
            stream.shown = self.kept.take
        return stream


def make_stream(
    source: Source, vlm: VLM | None, settings: Settings, place: int = 0, index: int = 0
) -> Stream:
    return Stream(
        source,
        None if vlm is None else vlm.preprocess,
        settings.batch_size,
        shuffle_seed=settings.seed if settings.shuffle and not source.live else None,
        start_position=place,
        start_index=index,
        blocks=True,
    )


def prepare(source: Source, settings: Settings) -> Inputs:
    """Load the model, encode the names."""
    count, known = settings.novel_count() or 0, bool(settings.names())
    notes = [*source.notes(), *check_count(count, len(source), known)]
    vlm: VLM | None = None
    scale = settings.logit_scale or 100.0
    words: np.ndarray | None = None
    if source.kind == "embeddings":
        if settings.anchors is None and settings.names():
            raise InputError(
                "the source holds embeddings: give the text embeddings of the known names as "
                "`anchors=anchors.npy`, made with the same model"
            )
        width = len(source.read(0))
        anchors = np.zeros((0, width), np.float32)
        if settings.anchors is not None:
            anchors = read_texts("anchors", settings.anchors, len(settings.names()), width)
        own_words = settings.own_words()
        if settings.word_embeddings is not None:
            words = read_texts("word_embeddings", settings.word_embeddings, len(own_words), width)
            if settings.vocabulary == "none":
                raise InputError("`word_embeddings=...` are of a vocabulary, and it is 'none'")
        elif own_words:
            raise InputError(
                "the source holds embeddings: give those of the vocabulary too, as "
                "`word_embeddings=words.npy`, made with the same model"
            )
        notes.append(EMBEDDINGS_NOTE)
    else:
        for name in ("anchors", "word_embeddings", "logit_scale"):
            if getattr(settings, name) is not None:
                raise InputError(
                    f"`{name}=...` goes with a source of embeddings, this one holds images"
                )
        vlm = load_vlm(settings.model, settings.device)
        scale = vlm.logit_scale
        anchors = anchors_of(vlm, settings)
        if settings.model == "mini":
            notes.append(MINI_NOTE)
    return Inputs(source, task_of(settings, vlm, anchors, scale, words), settings, notes)


def anchors_of(vlm: VLM, settings: Settings) -> np.ndarray:
    """The text embeddings of the known names; no row where there is none."""
    if not settings.names():
        return np.zeros((0, vlm.dim), np.float32)
    return text_anchors(vlm, settings.names(), settings.templates)


def task_of(
    settings: Settings,
    vlm: VLM | None,
    anchors: np.ndarray,
    logit_scale: float,
    word_embeddings: np.ndarray | None = None,
) -> Task:
    """What a method is to do; the same for a run and for a stream of the service."""
    if settings.vocabulary == "none":
        word_embeddings = np.zeros((0, anchors.shape[1]), np.float32)
    return Task(
        known=settings.names(),
        anchors=anchors,
        novel=settings.novel_count(),
        vlm=vlm,
        logit_scale=logit_scale,
        seed=settings.seed,
        templates=tuple(settings.templates),
        words=settings.own_words(),
        word_embeddings=word_embeddings,
        precision=settings.precision,  # type: ignore[arg-type]
    )


#: Where model, anchors and words lie does not matter, what they hold does.
_HASHED = ("model", "anchors", "word_embeddings")


def identity_of(inputs: Inputs, begins: State | None) -> dict[str, Any]:
    """What must be equal for a run to be continued: contents by their hashes, no paths. ``begins``
    is the state that it goes on from."""
    vlm = inputs.task.vlm
    described = {k: v for k, v in inputs.settings.describe().items() if k not in _HASHED}
    return {
        **described,
        "model_fingerprint": None if vlm is None else vlm.fingerprint,
        "input": inputs.source.fingerprint(),
        "anchors": hashlib.sha256(inputs.task.anchors.tobytes()).hexdigest(),
        "words": _hash_of_words(inputs.task),
        **({} if begins is None else {"earlier": _hash(begins)}),
    }


def _hash_of_words(task: Task) -> str:
    digest = hashlib.sha256("\n".join(task.words).encode())
    if task.word_embeddings is not None:
        digest.update(b"embedded" + task.word_embeddings.tobytes())
    return digest.hexdigest()


def _hash(state: State) -> str:
    digest = hashlib.sha256(str(state.values["seen"]).encode())
    for name, array in sorted(state.arrays.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def read_texts(name: str, given: str | np.ndarray, named: int, width: int) -> np.ndarray:
    """Unit rows from an array or an .npy file of text embeddings, one for each of ``named`` texts.

    Words need no names (``named`` 0): they help to group, without being suggested.
    """
    file = Rows(given)
    path = f"{name} {given!r}" if isinstance(given, str) else name
    if len(file.shape) != 2 or file.dtype.kind != "f":
        raise InputError(
            f"{path} must be floats of shape (texts, dimensions), got {file.dtype} of shape "
            f"{file.shape}"
        )
    if len(file) != named and (named or name == "anchors"):
        what = "classes are named" if name == "anchors" else "words are in the vocabulary"
        raise InputError(
            f"{path} have {len(file)} rows but {named} {what}: give one row each, in the same order"
        )
    if file.shape[1] != width:
        raise InputError(
            f"embeddings have {width} dimensions but {name} {file.shape[1]}: make both with the "
            "same model"
        )
    rows = normalise(file.get(0, len(file)).astype(np.float64)).astype(np.float32)
    if not np.isfinite(rows).all() or not rows.any(axis=1).all():
        raise InputError(f"{path} contain NaN, infinite or zero rows")
    return rows
