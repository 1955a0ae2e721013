"""From labelled images and a model to packs (``ttgcd bench pack``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.bench.images import choose
from ttgcd.bench.packs import Pack, Words
from ttgcd.datasets.registry import BENCHMARKS, load_benchmark
from ttgcd.errors import InputError
from ttgcd.streams.base import Source
from ttgcd.streams.stream import Stream

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM

#: Before the name or folder of a data set of Hugging Face.
HUGGING_FACE = "hf:"
_BATCH = 256

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Labelled:
    """Images with their classes."""

    name: str
    source: Source
    labels: np.ndarray
    classes: tuple[str, ...]
    known: tuple[int, ...] | None = None  # which the data set itself calls known

    def few(self, limit: int | None) -> Labelled:
        source, labels = choose(self.source, self.labels, limit)
        return Labelled(self.name, source, labels, self.classes, self.known)


@dataclass(frozen=True)
class Given:
    """What the user gave: where labelled images are, and how to read them."""

    source: str
    name: str | None = None
    labels: str | None = None
    data: Path | None = None
    streams: tuple[str, ...] | None = None
    split: str = "test"
    image_column: str = "image"
    label_column: str = "label"


def labelled_sets(given: Given) -> Iterator[Labelled]:
    """A set for every stream of a benchmark, or the one set of any other source."""
    if given.source in BENCHMARKS and given.source != "folder":
        yield from _benchmark(given)
        return
    if given.streams is not None:
        raise InputError(f"`streams=...` belongs to benchmarks; {given.source} is none")
    if given.source.startswith(HUGGING_FACE):
        yield hugging_face(
            _load_hugging_face(given.source.removeprefix(HUGGING_FACE), given.split),
            given.name or safe(given.source.removeprefix(HUGGING_FACE)),
            given.image_column,
            given.label_column,
        )
    elif given.labels is not None:
        yield _with_labels(given)
    else:
        folders = load_benchmark("folder", given.source)
        source, labels = folders.open_stream(folders.streams[0])
        classes = folders.known + folders.novel
        yield _sorted(given.name or safe(Path(given.source).name), source, labels, classes)


def hugging_face(dataset: Any, name: str, image: str = "image", label: str = "label") -> Labelled:
    """A ``datasets.Dataset`` with a column of images and one of class numbers or names."""
    from ttgcd.streams.objects import ObjectSource

    columns = list(dataset.column_names)
    for column, option in ((image, "image"), (label, "label")):
        if column not in columns:
            raise InputError(
                f"the data set has no column {column!r} but {', '.join(columns)}: "
                f"give `{option}_column=...`"
            )
    values = list(dataset[label])
    classes = getattr(dataset.features[label], "names", None)
    if classes is None:
        classes = sorted({str(value) for value in values})
        values = [classes.index(str(value)) for value in values]
    pictures = dataset.select_columns([image])
    if image != "image":
        pictures = pictures.rename_column(image, "image")
    labels = np.array(values, np.int64)
    return _named(name, ObjectSource(pictures, "the data set"), labels, tuple(map(str, classes)))


def make_pack(
    vlm: VLM, given: Labelled, templates: Sequence[str], progress: Progress | None = None
) -> tuple[Pack, int]:
    """The pack of a set by a model, and how many images could not be read."""
    from ttgcd.vlm.anchors import text_anchors

    texts = text_anchors(vlm, given.classes, templates, allow_duplicates=True)
    encoder = vlm.encoder()
    features = np.zeros((len(given.source), vlm.dim), np.float32)
    read = np.zeros(len(given.source), bool)
    for batch in Stream(given.source, vlm.preprocess, batch_size=_BATCH):
        assert batch.images is not None
        places = list(batch.positions)
        features[places], read[places] = encoder(batch.images), True
        if progress is not None:
            progress(given.name, batch.next_position, len(given.source))
    if not read.any():
        raise InputError(f"{given.name}: none of {len(read)} images can be read")
    pack = Pack(
        name=given.name,
        features=features[read],
        labels=given.labels[read],
        texts=texts,
        names=given.classes,
        model=short_name(vlm.name),
        logit_scale=float(vlm.logit_scale),
        known=given.known,
    )
    return pack, int((~read).sum())


def make_words(vlm: VLM, words: Sequence[str], templates: Sequence[str]) -> Words:
    """The text embeddings of a vocabulary."""
    from ttgcd.vlm.anchors import text_anchors

    return Words(tuple(words), text_anchors(vlm, words, templates, allow_duplicates=True))


def short_name(model: str) -> str:
    """A model's name as part of a file's.

    >>> short_name("openai/clip-vit-base-patch16"), short_name("/models/my clip/")
    ('openai_clip-vit-base-patch16', 'my_clip')
    """
    return safe(Path(model).name if Path(model).is_absolute() else model)


def safe(name: str) -> str:
    """Letters, digits, dots and dashes, for the name of a file."""
    return re.sub(r"[^\w.-]+", "_", name.strip("/")).strip(".") or "pack"


def _benchmark(given: Given) -> Iterator[Labelled]:
    benchmark = load_benchmark(given.source, given.data)
    if given.labels is not None:
        raise InputError(f"{given.source} has labels of its own: leave out `labels=...`")
    streams = given.streams or benchmark.streams
    if given.name is not None and len(streams) > 1:
        raise InputError(f"{len(streams)} streams make as many packs: leave out `name=...`")
    known = tuple(range(len(benchmark.known)))
    for stream in streams:
        source, labels = benchmark.open_stream(stream)
        name = given.name or safe(f"{given.source}-{stream}")
        yield Labelled(name, source, labels, benchmark.known + benchmark.novel, known)


def _with_labels(given: Given) -> Labelled:
    """Any source of images, with a CSV of labels by id."""
    from ttgcd.streams.labels import read_labels
    from ttgcd.streams.open import open_source

    assert given.labels is not None
    source, by_id = open_source(given.source), read_labels(given.labels)
    if source.kind != "images":
        raise InputError(f"{given.source} holds embeddings: a pack is made from images")
    ids = source.ids(range(len(source)))
    missing = [id for id in ids if id not in by_id]
    if missing:
        raise InputError(
            f"{given.labels} has no label for {len(missing)} of {len(ids)} images (first: "
            f"{missing[0]!r}): a pack needs all of them"
        )
    classes = tuple(sorted(set(by_id[id] for id in ids)))
    labels = np.array([classes.index(by_id[id]) for id in ids], np.int64)
    return _named(given.name or safe(Path(given.source).stem), source, labels, classes)


def _load_hugging_face(name: str, split: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"{HUGGING_FACE}{name} needs the package datasets: `pip install datasets`"
        ) from None
    try:
        if Path(name, "dataset_dict.json").is_file() or Path(name, "state.json").is_file():
            loaded = datasets.load_from_disk(name)
        else:
            loaded = datasets.load_dataset(name)
    except Exception as error:  # the library and the loaders beneath raise kinds of their own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"the data set {name!r} cannot be loaded: {reason}") from error
    if not hasattr(loaded, "keys"):
        return loaded
    if split not in loaded:
        raise InputError(
            f"the data set {name!r} has no split {split!r}: give `split=...`, one of "
            f"{', '.join(map(str, loaded))}"
        )
    return loaded[split]


def _sorted(name: str, source: Source, ids: np.ndarray, classes: Sequence[str]) -> Labelled:
    """Classes in alphabetical order, whatever a split made of them."""
    order = sorted(range(len(classes)), key=classes.__getitem__)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return _named(name, source, place[ids], tuple(classes[i] for i in order))


def _named(name: str, source: Source, labels: np.ndarray, classes: tuple[str, ...]) -> Labelled:
    if len(np.unique(labels)) < 2:
        raise InputError(f"{name} shows {len(np.unique(labels))} class: a pack needs two or more")
    if labels.min() < 0:
        raise InputError(f"{name}: {int((labels < 0).sum())} images have no label (-1)")
    readable = tuple(" ".join(text.replace("_", " ").split()) for text in classes)
    return Labelled(name, source, labels, readable)
