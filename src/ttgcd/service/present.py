"""From columns to what goes over the wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ttgcd.discovery.edits.log import active
from ttgcd.methods.base import category_name
from ttgcd.service.live import LiveStream
from ttgcd.service.rows import UNANSWERED
from ttgcd.service.schemas import (
    Categories,
    CategoryInfo,
    EditInfo,
    Edits,
    Progress,
    Row,
    Stats,
    Step,
    StreamInfo,
)
from ttgcd.service.views import View

_STEPS = 60
_RATE_SECONDS, _RATE_BINS = 10.0, 60
DOUBTFUL = 0.15


def rows_of(stream: LiveStream, view: View, indexes: Iterable[int]) -> list[Row]:
    """Rows as they are now; an image without an answer is left out."""
    by_id = view.by_id()
    wanted = list(indexes)
    sure = stream.rows.confidence(np.array(wanted, np.int64)) if wanted else ()
    found = []
    for index, confidence in zip(wanted, sure):
        row = stream.rows.at(index)
        category = row["shown"]
        if category == UNANSWERED:
            continue
        if index < len(view):
            confidence = view.columns["confidence"][index]
        record = by_id.get(category, {})
        found.append(
            Row(
                index=index,
                id=stream.journal.names[index],
                category=category,
                kind=record.get("kind") or ("known" if category < stream.n_known else "novel"),
                name=record.get("name") or category_name(stream.task.known, category),
                score=row["score"],
                confidence=float(confidence),
                provisional=not row["final"],
                revised=category != row["first"],
            )
        )
    return found


def stream_info(stream: LiveStream) -> StreamInfo:
    learner = stream.learner
    method = learner.method
    warmup = getattr(method, "warmup", None)
    shown = stream.rows.column("shown")
    progress = learner.phase
    return StreamInfo(
        name=stream.name,
        paused=stream.paused,
        images=len(stream.journal),
        learned=learner.next,
        waiting=stream.waiting,
        warmup=warmup,
        warmed_up=bool(getattr(method, "begun", True)),
        progress=None if progress is None else Progress(**progress),
        failed=learner.failed,
        known=stream.n_known,
        novel=len(np.unique(shown[shown >= stream.n_known])),
        edits=len(stream.views.now().edits),
        method=method.name,
        batch_size=stream.settings.batch_size,
        seed=stream.settings.seed,
        bytes=stream.journal.bytes,
        cursor=stream.rows.sequence,
    )


def categories_of(stream: LiveStream, view: View) -> Categories:
    places = stream.journal.ids
    return Categories(
        categories=[
            CategoryInfo(
                **{key: record[key] for key in CategoryInfo.model_fields if key in record}
                | {"exemplars": [places[name] for name in record["exemplars"] if name in places]}
            )
            for record in view.categories
        ]
    )


def edits_of(view: View) -> Edits:
    counting = {edit.number for edit in active(view.edits)}
    return Edits(
        edits=[
            EditInfo(
                number=edit.number,
                op=edit.op,
                text=edit.text(),
                when=edit.when,
                who=edit.who,
                in_force=edit.number in counting,
                problem=view.unapplied.get(edit.number),
            )
            for edit in view.edits
        ]
    )


def stats_of(stream: LiveStream, view: View, now: float) -> Stats:
    shown = view.columns["shown"]
    kinds = {record["id"]: record["kind"] for record in view.categories}
    ids, at = np.unique(shown, return_inverse=True)
    is_novel = np.array([kinds.get(int(c), "novel") == "novel" for c in ids], bool)
    novel = is_novel[at.ravel()] if len(shown) else np.zeros(0, bool)
    width = max(1, -(-len(shown) // _STEPS))
    steps = [
        Step(start=start, known=int((~part).sum()), novel=int(part.sum()))
        for start in range(0, len(shown), width)
        for part in [novel[start : start + width]]
    ]
    return Stats(
        images=len(stream.journal),
        known=int((~novel).sum()),
        novel=int(novel.sum()),
        doubtful=int((view.columns["confidence"] < DOUBTFUL).sum()),
        queue=stream.waiting,
        timeline=steps,
        rate=_rate(stream, now),
        rate_seconds=_RATE_SECONDS,
    )


def _rate(stream: LiveStream, now: float) -> list[float]:
    """Images a second in the last ten minutes, oldest first."""
    counts = [0] * _RATE_BINS
    for index in range(len(stream.journal) - 1, -1, -1):
        bin_ = int((now - stream.journal.arrived(index)) / _RATE_SECONDS)
        if bin_ >= _RATE_BINS:
            break
        counts[_RATE_BINS - 1 - max(bin_, 0)] += 1
    return [count / _RATE_SECONDS for count in counts]


def chosen(view: View, category: int | None, order: str) -> np.ndarray:
    """Indexes of the rows of a category, or of all, in an order."""
    columns = view.columns
    rows = (
        np.arange(len(view)) if category is None else np.flatnonzero(columns["shown"] == category)
    )
    keys: dict[str, Any] = {
        "newest": -rows,
        "typical": -columns["score"][rows],
        "doubt": columns["confidence"][rows],
    }
    return rows[np.argsort(keys[order], kind="stable")]


def images_named(stream: LiveStream, indexes: Sequence[int] | None) -> list[str] | None:
    """Image ids from places; what is not there is left for the edit to refuse."""
    if indexes is None:
        return None
    names = stream.journal.names
    return [names[i] if i < len(names) else f"#{i}" for i in indexes]
