"""The product: a source of images and a list of names in, known and discovered categories out."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttgcd.discovery.sanity import accuracy_contradicts
from ttgcd.discovery.settings import Settings

if TYPE_CHECKING:
    from ttgcd.discovery.inputs import Inputs
    from ttgcd.streams.base import Source

__all__ = ["Discovery", "Settings", "discover"]


@dataclass(frozen=True)
class Discovery:
    """What a run found; everything is also in the files of ``out``."""

    out: Path
    categories: list[dict[str, Any]]
    samples: int
    rejected: int
    scores: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)

    def assignments(self) -> list[dict[str, Any]]:
        """The rows of assignments.parquet, in stream order."""
        import pyarrow.parquet as pq

        return pq.read_table(self.out / "assignments.parquet").to_pylist()

    def text(self) -> str:
        """A summary for people."""
        found = [c for c in self.categories if c["count"]]
        novel = [c for c in found if c["kind"] == "novel"]
        in_novel = sum(c["count"] for c in novel)
        lines = [f"note: {note}" for note in self.notes]
        lines.append(
            f"{self.samples:,} samples: {self.samples - in_novel:,} in "
            f"{len(found) - len(novel)} known classes, {in_novel:,} in {len(novel)} novel ones"
            + (f"; {self.rejected:,} set aside (rejected.csv)" if self.rejected else "")
        )
        for category in sorted(novel, key=lambda c: -c["count"])[:10]:
            words = ", ".join(category["suggested_names"])
            lines.append(
                f"  {category['name']:<9} {category['count']:>6,}" + (f"  ({words}?)" * bool(words))
            )
        if len(novel) > 10:
            lines.append(f"  ... and {len(novel) - 10} more")
        if self.scores is not None:
            shown = "   ".join(
                f"{label} {'n/a' if self.scores[key] is None else format(self.scores[key], '.1f')}"
                for label, key in (("All", "all"), ("Known", "known"), ("Novel", "novel"))
            )
            lines.append(f"Clustering accuracy, percent: {shown}")
            lines += [f"note: {note}" for note in accuracy_contradicts(self.scores)]
        lines.append(f"report: {self.out / 'report.html'}")
        return "\n".join(lines)


def discover(
    source: str | Path | Source | Sequence[str],
    *,
    out: str | Path = "ttgcd-out",
    settings: Settings | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    command: Sequence[str] = (),
    **options: Any,
) -> Discovery:
    """Name and group every image of ``source``.

    ``options`` are the fields of ``Settings``, e.g. ``known=["cat", "dog"], novel=5,
    model="mini"``. The files described in the documentation are left in ``out``.
    """
    settings = settings if settings is not None else Settings(**options)
    from ttgcd.discovery.inputs import prepare
    from ttgcd.discovery.outcome import counted, read_outcome, write_outcome
    from ttgcd.discovery.sanity import late_classes_of
    from ttgcd.engines.folder import FolderRun, run_to_folder
    from ttgcd.engines.manifest import Clock
    from ttgcd.report.summary import StreamSummary
    from ttgcd.streams.labels import read_labels
    from ttgcd.streams.open import open_source

    clock = Clock()
    if settings.labels is not None:
        read_labels(settings.labels)
    if settings.threads is not None:
        import torch

        torch.set_num_threads(settings.threads)
    opened = open_source(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        inputs = prepare(opened, settings)
        task, method = inputs.task, settings.make_method()
        summary = StreamSummary(task.n_known, task.novel or 0, seed=settings.seed)

        def say(text: str) -> None:
            inputs.notes.append(text)
            if (aloud := getattr(progress, "say", None)) is not None:
                aloud(text)

        def finishing(run: FolderRun) -> None:
            said = {str(w.message) for w in caught if issubclass(w.category, UserWarning)}
            notes = inputs.notes + counted(run) + sorted(said)
            buffered = getattr(method, "warmup", 0)
            notes += late_classes_of(run.out / "assignments.parquet", buffered, task.known)
            write_outcome(run, method, inputs, summary, clock, command, notes, progress)

        run_to_folder(
            method,
            task,
            inputs.stream,
            Path(out),
            _identity(settings, inputs),
            sinks=[summary],
            resume=resume,
            overwrite=overwrite,
            finishing=finishing,
            say=say,
            progress=progress,
        )
    return Discovery(**read_outcome(Path(out)))


def _identity(settings: Settings, inputs: Inputs) -> dict[str, Any]:
    """What must be equal for a run to be continued: contents by their hashes, no paths."""
    vlm = inputs.task.vlm
    return {
        **{key: value for key, value in settings.describe().items() if key != "model"},
        "model_fingerprint": None if vlm is None else vlm.fingerprint,
        "input": inputs.source.fingerprint(),
        "anchors": hashlib.sha256(inputs.task.anchors.tobytes()).hexdigest(),
    }
