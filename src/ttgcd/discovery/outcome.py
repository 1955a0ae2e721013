"""What a finished run leaves beside its assignments: categories, scores, manifest, report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.discovery.categories import describe_categories
from ttgcd.discovery.edits import EditedFolder
from ttgcd.discovery.inputs import Inputs
from ttgcd.discovery.insight import add_confidence, look_closer, signs_of
from ttgcd.discovery.level_files import add_levels
from ttgcd.discovery.review import recounted, set_aside
from ttgcd.discovery.settings import Settings
from ttgcd.engines.folder import FolderRun
from ttgcd.engines.run_record import Clock, manifest
from ttgcd.evaluation.files import evaluate_files
from ttgcd.methods.base import Method, Task
from ttgcd.report.findings import facts_of
from ttgcd.report.page import write_report
from ttgcd.report.run_files import RunFiles
from ttgcd.report.summary import StreamSummary
from ttgcd.report.verdict import judge
from ttgcd.storage.durable import write_atomic
from ttgcd.storage.memory import give_back
from ttgcd.streams.labels import read_labels
from ttgcd.vlm.anchors import text_anchors
from ttgcd.wording import found


def write_outcome(
    run: FolderRun,
    method: Method,
    inputs: Inputs,
    summary: StreamSummary,
    clock: Clock,
    command: Sequence[str],
    notes: list[str],
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Write categories.json, run.json and report.html into ``run.out``."""
    settings, task = inputs.settings, inputs.task
    counts = summary.counts.tolist()
    exemplars = [[e["id"] for e in summary.exemplars(c)] for c in range(len(counts))]
    give_back()  # what the stream needed
    insight = look_closer(
        run.out,
        task.n_known,
        *_vocabulary(task, settings),
        exclude=task.known,
        ranked=settings.vocabulary is None,
    )
    categories = describe_categories(method, task, counts, exemplars, insight.names)
    give_back()
    judged = add_confidence(run.out, method.name, task.anchors, inputs.named)
    signs = signs_of(run.out, task.anchors)
    if judged and settings.abstain is not None:
        unsure = set_aside(run.out, settings.abstain)
        if unsure is not None:
            categories = [*recounted(run.out, categories), unsure]
    give_back()
    curve = method.count_curve()
    levels, said = add_levels(run.out, categories, curve, settings.level)
    give_back()
    health = {**method.health(), "assignment_entropy": float(summary.entropy())}
    scores = None
    if settings.labels is not None:
        evaluation = evaluate_files(run.out / "assignments.parquet", settings.labels, task.known)
        scores = evaluation.as_json()
    record = manifest(
        clock,
        command=command,
        settings=settings.describe(),
        model=None if task.vlm is None else {"name": task.vlm.name, "sha256": task.vlm.fingerprint},
        input={
            "source": inputs.source.origin,
            "folder": inputs.source.folder,
            "kind": inputs.source.kind,
            "samples": len(inputs.source),
            "fingerprint": inputs.source.fingerprint(),
        },
        seconds=run.timings,
    )
    record |= {
        "samples": run.samples,
        "rejected": run.rejected,
        "resumed_at": run.resumed_at,
        "novel": method.novel,
        "count_trace": []
        if run.estimate is None
        else [list(point) for point in run.estimate.trace],
        "count_curve": [] if curve is None else curve.as_json(),
        "notes": [*notes, *said],
        "health": health,
        "scores": scores,
        "signs": None if signs is None else signs.as_json(),
    }
    _write_json(
        run.out / "categories.json",
        {
            "format": 1,
            "categories": categories,
            "questions": list(insight.questions),
            **({} if levels is None else {"levels": levels}),
        },
    )
    _write_json(run.out / "run.json", record)
    # The verdict is on what the files say: nothing decides it that a reader could not see.
    record["verdict"] = judge(facts_of(RunFiles.read(run.out))).as_json()
    _write_json(run.out / "run.json", record)
    write_report(
        run.out,
        summary=summary,
        source=inputs.source,
        kept=inputs.kept,
        labels=None if settings.labels is None else read_labels(settings.labels),
        progress=progress,
    )
    EditedFolder(run.out, finished=False).adopt()


def _vocabulary(task: Task, settings: Settings) -> tuple[Sequence[str], np.ndarray | None]:
    """Words to suggest names from, with their embeddings; none where no words are at hand."""
    if task.word_embeddings is not None:
        return task.words, task.word_embeddings if task.words else None
    words = settings.words()
    if task.vlm is None or not words:
        return (), None
    return words, text_anchors(task.vlm, words, task.templates)


def counted(run: FolderRun, known: bool) -> list[str]:
    """What a user should know when L was estimated."""
    if run.estimate is None:
        return []
    return [
        f"estimated {found(run.estimate.novel, known)} from the first samples (silhouette); give "
        "the number if you know it"
    ]


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain, allow_nan=False)
    write_atomic(path, (text + "\n").encode())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")
