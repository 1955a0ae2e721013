"""Packs: image features, labels and class texts of one labelled set by one model, in one file.

``NAME.npz`` holds ``v`` (n, d) unit rows in half precision, ``y`` (n,) class ids, ``text`` (C, d)
unit rows (zeros where a class has no text), ``names`` (C,), ``model``, and, where they are known,
``logit_scale`` and ``known``, the ids of the classes that the data set itself calls known.
``words_MODEL.npz`` beside it holds a vocabulary by the same model: ``names`` (V,), ``vec`` (V, d).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ttgcd.bench.giveaways import harmless
from ttgcd.errors import InputError
from ttgcd.prototypes.bank import normalise

#: OpenAI's CLIP; packs of other models say theirs.
LOGIT_SCALE = 100.0
_WORDS = "words_"


@dataclass(frozen=True)
class Pack:
    """A labelled set as one model sees it.

    Attributes
    ----------
    features : array (n, d), unit rows
    labels : array (n,), class of every row
    texts : array (C, d), unit rows; zeros for a class whose name has no text embedding
    names : tuple of str, one a class
    model : str, as in the name of the vocabulary's file
    logit_scale : float
    known : tuple of int or None
        Classes that the data set itself calls known, in its order.
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    texts: np.ndarray
    names: tuple[str, ...]
    model: str
    logit_scale: float = LOGIT_SCALE
    known: tuple[int, ...] | None = None

    def present(self) -> np.ndarray:
        """Classes that have a row."""
        return np.unique(self.labels)

    def with_text(self) -> np.ndarray:
        """Classes whose name has a text embedding."""
        return np.flatnonzero(np.abs(self.texts).sum(axis=1) > 0)


@dataclass(frozen=True)
class Words:
    """A vocabulary with text embeddings, unit rows."""

    names: tuple[str, ...]
    vectors: np.ndarray

    def without(self, hidden: tuple[str, ...]) -> Words:
        """Without the words that give a hidden class's name away."""
        kept = np.flatnonzero(harmless(self.names, hidden))
        return Words(tuple(self.names[i] for i in kept), self.vectors[kept])


def packs_in(folder: Path) -> list[Path]:
    """The packs of a folder, by name."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; `ttgcd bench pack` makes packs")
    found = [p for p in sorted(folder.glob("*.npz")) if not p.name.startswith(_WORDS)]
    if not found:
        raise InputError(f"{folder} holds no pack (NAME.npz); `ttgcd bench pack` makes them")
    return found


def read_pack(path: Path) -> Pack:
    held = _read(path, ("v", "y", "text", "names", "model"))
    features, labels, texts, names = (held[key] for key in ("v", "y", "text", "names"))
    if features.ndim != 2 or labels.shape != features.shape[:1] or not len(features):
        raise InputError(f"{path}: v has shape {features.shape}, y {labels.shape}: one row a label")
    if texts.shape != (len(names), features.shape[1]):
        raise InputError(
            f"{path}: text has shape {texts.shape} for {len(names)} names and {features.shape[1]} "
            "features: one row a name, as wide as v"
        )
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= len(names):
        raise InputError(f"{path}: y must be places in the {len(names)} names")
    if not np.isfinite(features).all() or not np.isfinite(texts).all():
        raise InputError(f"{path}: v or text holds values that are not finite: make it again")
    known = held.get("known")
    return Pack(
        name=path.stem,
        features=normalise(features.astype(np.float64)).astype(np.float32),
        labels=labels.astype(np.int64),
        texts=normalise(texts.astype(np.float64)).astype(np.float32),
        names=tuple(map(str, names)),
        model=str(held["model"]),
        logit_scale=float(held.get("logit_scale", LOGIT_SCALE)),
        known=None if known is None else tuple(map(int, known)),
    )


def read_words(folder: Path, model: str) -> Words | None:
    """The vocabulary of a model beside its packs, if there is one."""
    path = words_path(folder, model)
    if not path.exists():
        return None
    held = _read(path, ("names", "vec"))
    names, vectors = held["names"], held["vec"]
    if vectors.ndim != 2 or len(vectors) != len(names) or not np.isfinite(vectors).all():
        raise InputError(f"{path}: vec has shape {vectors.shape} for {len(names)} names")
    unit = normalise(vectors.astype(np.float64)).astype(np.float32)
    return Words(tuple(map(str, names)), unit)


def words_path(folder: Path, model: str) -> Path:
    return folder / f"{_WORDS}{model}.npz"


def write_pack(folder: Path, pack: Pack) -> Path:
    """Write ``folder/NAME.npz``."""
    held: dict[str, np.ndarray] = {
        "v": pack.features.astype(np.float16),
        "y": pack.labels.astype(np.int32),
        "text": pack.texts.astype(np.float16),
        "names": np.array(pack.names),
        "model": np.array(pack.model),
        "logit_scale": np.array(pack.logit_scale),
    }
    if pack.known is not None:
        held["known"] = np.array(pack.known, np.int32)
    return _write(folder / f"{pack.name}.npz", held)


def write_words(folder: Path, model: str, words: Words) -> Path:
    """Write the vocabulary of all packs of a model; the same one may be there already."""
    path = words_path(folder, model)
    if path.exists():
        there = _read(path, ("names", "vec"))
        if tuple(map(str, there["names"])) != words.names:
            raise InputError(
                f"{path} holds other words, and its packs are measured with them: "
                "give another `out=...`, or remove it"
            )
    held = {"names": np.array(words.names), "vec": words.vectors.astype(np.float16)}
    return _write(path, held)


def _read(path: Path, needed: tuple[str, ...]) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            held = {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} cannot be read as a pack ({error}): make it again") from None
    missing = [key for key in needed if key not in held]
    if missing:
        raise InputError(f"{path} is no pack: it has no {', '.join(missing)}")
    return held


def _write(path: Path, held: Mapping[str, np.ndarray]) -> Path:
    """Write beside, then rename: readers see a whole file or none."""
    temporary = path.with_name(f".{path.stem}.partial.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(temporary, **held)  # type: ignore[arg-type]
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    return path
