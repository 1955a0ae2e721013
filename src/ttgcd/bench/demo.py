"""The demo: one IconShift domain, known classes by name only, novel ones unnamed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ttgcd.bench.measure import fit_warmup
from ttgcd.datasets.iconshift import iconshift_classes, iconshift_domains, load_iconshift
from ttgcd.discovery import Discovery, Settings, run_discovery
from ttgcd.discovery.inputs import make_stream, prepare
from ttgcd.engines.local import run
from ttgcd.errors import InputError
from ttgcd.evaluation import score_stream
from ttgcd.methods.base import Caller, Method
from ttgcd.methods.registry import PRESETS, find_preset, load_method, load_preset
from ttgcd.streams.base import Batch, Source
from ttgcd.streams.stream import Stream

#: the largest domain
DOMAIN = "line"
#: what stands behind a row of the table
ABOUT = {
    "scout": "the default: clusters and texts together, refitted along the stream",
    "PACT (paper)": "the paper's method, to the letter",
    "PACT (robust)": "the same with better seeds",
    "zero-shot+kmeans": "names by text, k-means on what fits none",
    "kmeans": "plain k-means on all images at the end",
    "ss-kmeans": "k-means with the confident names held fixed",
}


@dataclass(frozen=True)
class Demo:
    """The run and the table of scores."""

    found: Discovery
    domain: str
    rows: list[tuple[str, float, float, float]]
    header: str

    def text(self) -> str:
        lines = [self.header, ""]
        lines.append(f"{'clustering accuracy, percent':<30}{'All':>7}{'Known':>8}{'Novel':>8}")
        for name, *values in self.rows:
            numbers = "".join(f"{100 * v:>7.1f} " for v in values)
            lines.append(f"{name:<30}{numbers}  {ABOUT.get(name, '')}".rstrip())
        return "\n".join(lines)


def run_demo(
    domain: str | None,
    out: Path,
    preset: str,
    seed: int,
    rivals: Sequence[str],
    progress: Callable[[str, int, int], None],
    *,
    told: Callable[[Discovery, Sequence[str]], None] = lambda found, others: None,
    resume: bool = False,
    overwrite: bool = False,
) -> Demo:
    """Run a preset into ``out`` with a report, then the other ones and the rivals on the stream.

    ``told`` hears of the run, and of what it will be compared with, when the run is finished:
    the comparison takes longer.
    """
    domains = iconshift_domains()
    domain = domain or DOMAIN
    if domain not in domains:
        raise InputError(f"unknown domain {domain!r}: choose one of {', '.join(domains)}")
    source, labels = load_iconshift(domain)
    known, novel = iconshift_classes()
    present = set(labels)
    novel_here = [name for name in novel if name in present]
    warmup = fit_warmup(load_method("pact").config(), len(source))["warmup"]
    # Beside the run nothing may be left, and in it only what a run leaves.
    with TemporaryDirectory() as folder:
        labels_file = Path(folder) / "labels.csv"
        _write_labels(labels_file, source, labels)
        settings = Settings(
            known=known,
            novel=len(novel_here),
            model="mini",
            labels=str(labels_file),
            preset=preset,
            changes={"warmup": warmup},
            seed=seed,
        )
        found = run_discovery(
            source,
            settings,
            out=out,
            resume=resume,
            overwrite=overwrite,
            progress=progress,
        )
    scores = found.scores or {}
    rows = [(_label(preset), *(scores[key] / 100 for key in ("all", "known", "novel")))]
    true = _true_ids(labels, [*known, *novel_here])
    inputs = prepare(source, settings)
    others: dict[str, Method] = {
        _label(other): load_preset(other, warmup=warmup) for other in PRESETS if other != preset
    }
    methods = {**others, **{name: load_method(name) for name in rivals}}
    told(found, list(methods))
    caller = _Told(progress)
    for name, method in methods.items():
        stream = make_stream(source, inputs.task.vlm, settings)
        shown = _shown(stream, f"compare {name}", len(source), progress)
        result = run(method, inputs.task, shown, caller=caller)
        score = score_stream(result.category, true[result.positions], len(known))
        rows.append((name, score.all, score.known, score.novel))
    header = (
        f"IconShift, {domain}: {len(source):,} images, {len(known)} known classes by name, "
        f"{len(novel_here)} novel ones unnamed; buffer W = {warmup}, seed {seed}.\n"
        "Embedded model 'mini' (not CLIP ViT-B/16); the known classes' names are all it was told."
    )
    return Demo(found, domain, rows, header)


def _label(preset: str) -> str:
    """The method's name, and the preset's where it says more."""
    method = find_preset(preset).method
    return method if method == preset else f"{method.upper()} ({preset})"


class _Told(Caller):
    """Passes on how far a long phase within one batch is; presets that train alike train once."""

    def __init__(self, progress: Callable[[str, int, int], None]) -> None:
        self._progress = progress
        self.realigned = {}

    def progress(self, phase: str, done: int, total: int) -> None:
        self._progress(phase, done, total)


def _shown(
    stream: Stream, phase: str, total: int, progress: Callable[[str, int, int], None]
) -> Iterator[Batch]:
    """The stream, telling how far it is."""
    for batch in stream:
        yield batch
        progress(phase, batch.next_position, total)


def _true_ids(labels: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    number = {name: i for i, name in enumerate(classes)}
    return np.array([number[label] for label in labels])


def _write_labels(path: Path, source: Source, labels: Sequence[str]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label"])
        writer.writerows((source.id(i), label) for i, label in enumerate(labels))
