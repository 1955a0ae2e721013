"""Discover: a source of images and names in, a ``Discovery`` out; and going on from one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ttgcd.discovery.edits.folder import key_of
from ttgcd.discovery.edits.handover import carry_over, check_handover
from ttgcd.discovery.engine import LOCAL, Engine, Kind
from ttgcd.discovery.found import Discovery
from ttgcd.discovery.inputs import Inputs, identity_of, prepare
from ttgcd.discovery.levels import LevelName
from ttgcd.discovery.outcome import counted, write_outcome
from ttgcd.discovery.review import check_judged
from ttgcd.discovery.sanity import late_classes_of, sorted_by_folder
from ttgcd.discovery.saved import SavedRun
from ttgcd.discovery.settings import DEFAULT_MODEL, Settings
from ttgcd.discovery.unknown_option import explained
from ttgcd.discovery.warned import user_warnings
from ttgcd.engines.folder import FolderRun, run_to_folder
from ttgcd.engines.output import plain
from ttgcd.engines.run_record import Clock
from ttgcd.errors import InputError
from ttgcd.methods.base import DEFAULT_TEMPLATES
from ttgcd.methods.stage_one import Realignment
from ttgcd.report.summary import StreamSummary
from ttgcd.streams.labels import read_labels
from ttgcd.streams.open import Spec, open_source

if TYPE_CHECKING:
    from ttgcd.streams.base import Source

Progress = Callable[[str, int, int], None]


@explained
def discover(
    source: Spec,
    *,
    known: str | Sequence[str] | None = None,
    novel: int | Literal["auto"] = "auto",
    model: str = DEFAULT_MODEL,
    out: str | Path | None = None,
    device: str = "auto",
    templates: Sequence[str] = DEFAULT_TEMPLATES,
    anchors: str | np.ndarray | None = None,
    word_embeddings: str | np.ndarray | None = None,
    logit_scale: float | None = None,
    vocabulary: str | Sequence[str] | None = None,
    labels: str | None = None,
    abstain: float | None = None,
    level: LevelName | None = None,
    method: str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    realign: bool | Mapping[str, Any] | Realignment = False,
    batch_size: int = 128,
    seed: int = 0,
    shuffle: bool = True,
    threads: int | None = None,
    precision: str = "fp32",
    resume: bool = False,
    overwrite: bool = False,
    engine: Kind = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    sync_every: int | None = None,
    progress: Progress | None = None,
) -> Discovery:
    """Name and group every image of ``source``.

    Parameters
    ----------
    source
        A folder, list file, tar shards, parquet or ``.npy``, here or at an address
        (``s3://bucket/photos``); a list of paths, PIL images or arrays; an array of images (uint8)
        or of embeddings (floats, with ``anchors``); a torch ``Dataset``; a Hugging Face data set,
        streaming or not; a ``ray.data.Dataset``; any iterable of images.
    known
        Names of the known classes: a list, "cat,dog" or "@file"; without any, everything is
        grouped, and groups may get names later.
    novel
        L, the number of novel categories (of groups where no name is known), or "auto".
    model
        Hub id, local folder, or "mini" for the small embedded one.
    out
        Folder for the files; None keeps them in a temporary one that goes with the result.
    device, threads
        Where the model runs, and on how many threads.
    templates
        Prompts with {} for the name.
    anchors
        For embeddings: text embeddings of the known names, one row each (array or ``.npy``).
    vocabulary
        Words that novel categories may be: they help to group and are suggested as names; "none"
        for none. Without one, nouns that ship are used.
    word_embeddings, logit_scale
        For embeddings: those of the vocabulary's words (array or ``.npy``; without a vocabulary
        they help to group only), and the inverse temperature of the text logits (100 for CLIP).
    labels
        CSV id,label of true names, for scoring only.
    abstain
        Answers with a confidence below this go to a pile for review.
    level
        What to show of the result: "coarse", "found", "fine" or a number of groups; the other
        levels are there at once, by ``at``.
    method, preset, changes
        A registered method or ``module:Class``; or a named configuration; and single options of it.
    realign
        Re-align the encoder on the first images before a method that leaves it as it is: True for
        the paper's settings, or options, as in ``{"warmup": 512, "epochs": 10}``
        (``ttgcd.methods.stage_one.Realignment``).
    batch_size, seed, shuffle
        How the stream is read; the seed decides every draw. Samples come in an order drawn from the
        seed, so that the first ones are like the rest; ``shuffle=False`` for what is really a
        stream, whose order means something.
    precision
        "int8" encodes about twice as fast on a CPU, at a small loss of accuracy.
    resume, overwrite
        Go on with an interrupted run in ``out``, or replace what is there.
    engine, workers, ray_address
        "ray" reads and encodes on a pool of workers, here or on an existing cluster, with the same
        result.
    sync_every
        On Ray: faster and not exactly the same, prototypes are merged every so many batches.
    progress
        Called with (phase, done, total).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> features = np.repeat(np.eye(4, 8), 50, axis=0) + 0.05 * rng.normal(size=(200, 8))
    >>> found = discover(features, known=["cat", "dog"], anchors=np.eye(2, 8), novel=2,
    ...                  preset="paper")
    >>> found.samples, [c.name for c in found.categories][:2]
    (200, ['cat', 'dog'])
    """
    settings = Settings(
        known=known,
        novel=novel,
        model=model,
        device=device,
        templates=templates,
        anchors=anchors,
        word_embeddings=word_embeddings,
        logit_scale=logit_scale,
        vocabulary=vocabulary,
        labels=labels,
        abstain=abstain,
        level=level,
        method=method,
        preset=preset,
        changes=changes or {},
        realign=realign,
        batch_size=batch_size,
        seed=seed,
        shuffle=shuffle,
        threads=threads,
        precision=precision,
    )
    return run_discovery(
        source,
        settings,
        out=out,
        resume=resume,
        overwrite=overwrite,
        engine=Engine(engine, workers, ray_address, sync_every),
        progress=progress,
    )


def run_discovery(
    source: Spec,
    settings: Settings,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    engine: Engine = LOCAL,
    progress: Progress | None = None,
    command: Sequence[str] = (),
    earlier: SavedRun | None = None,
) -> Discovery:
    """What ``discover`` does, for settings that are made already.

    ``earlier`` is a finished run to go on from: its method and ids, these images.
    """
    clock = Clock()
    if earlier is None:
        check_judged(settings.abstain, bool(settings.names()))
    if settings.labels is not None:
        read_labels(settings.labels)
    if settings.threads is not None:
        import torch

        torch.set_num_threads(settings.threads)
    opened = open_source(source)
    temporary = None if out is not None else tempfile.TemporaryDirectory(prefix="ttgcd-")
    folder = Path(temporary.name) / "run" if temporary is not None else Path(out or "")
    with user_warnings() as warned:
        inputs = (
            prepare(opened, settings) if earlier is None else _prepared(opened, settings, earlier)
        )
        task, method = inputs.task, settings.make_method()
        summary = StreamSummary(task.n_known, task.novel or 0, seed=settings.seed)

        def say(text: str) -> None:
            inputs.notes.append(text)
            if (aloud := getattr(progress, "say", None)) is not None:
                aloud(text)

        if earlier is None and not settings.shuffle and opened.kind == "images":
            ids = [opened.id(position) for position in range(len(opened))]
            for note in sorted_by_folder(ids, getattr(method, "warmup", 0)):
                say(note)

        def finishing(run: FolderRun) -> None:
            notes = inputs.notes + counted(run, bool(task.known)) + warned()
            if earlier is None:
                buffered = getattr(method, "warmup", 0)
                notes += late_classes_of(run.out / "assignments.parquet", buffered, task.known)
            else:
                carry_over(earlier.out, run.out)
            write_outcome(run, method, inputs, summary, clock, command, notes, progress)

        begins = None if earlier is None else earlier.begins_with(task, inputs.named)
        with engine.streams(inputs, method) as (make_stream, decides):
            identity = plain(identity_of(inputs, begins) | decides)
            if earlier is not None:
                check_handover(earlier.out, folder, key_of(identity))
            run_to_folder(
                method,
                task,
                make_stream,
                folder,
                identity,
                sinks=[summary],
                resume=resume,
                overwrite=overwrite,
                finishing=finishing,
                say=say,
                progress=progress,
                begins_with=begins,
            )
    return Discovery(folder, temporary)


def go_on(
    earlier: str | Path,
    images: Spec,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    engine: Engine = LOCAL,
    progress: Progress | None = None,
    command: Sequence[str] = (),
    labels: str | None = None,
    abstain: float | None = None,
    vocabulary: str | Sequence[str] | None = None,
    level: LevelName | None = None,
) -> Discovery:
    """Further images on top of a finished run: answered, learned from, ids as they were.

    Its edits go along. What does not decide the answers can be said anew: ``labels``, ``abstain``,
    ``vocabulary`` and ``level``, as for ``discover``.
    """
    saved = SavedRun(earlier)
    if out is not None and os.path.realpath(out) == os.path.realpath(earlier):
        raise InputError(
            f"{str(out)!r} is the run to go on from, and stays as it is: choose another `out=...`"
        )
    return run_discovery(
        images,
        replace(saved.settings, labels=labels, abstain=abstain, vocabulary=vocabulary, level=level),
        out=out,
        resume=resume,
        overwrite=overwrite,
        engine=engine,
        progress=progress,
        command=command,
        earlier=saved,
    )


def load(out: str | Path) -> Discovery:
    """The discovery in a folder: look at it, ``predict``, ``update``, ``save``."""
    SavedRun(out)  # a folder without a whole run is refused here, not at the first use
    return Discovery(Path(out))


def _prepared(source: Source, settings: Settings, earlier: SavedRun) -> Inputs:
    """The earlier run's task on another source."""
    task = earlier.task()
    earlier.check_kind(source.kind, task)
    named = earlier.named_texts(task)
    check_judged(settings.abstain, bool(task.known or named))
    notes = [*source.notes(), f"going on from the {earlier.record['samples']:,} samples before"]
    return Inputs(source, task, settings, notes, named)
