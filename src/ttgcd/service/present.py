"""From columns to what goes over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ttgcd.discovery.edits.log import active
from ttgcd.methods.base import category_name
from ttgcd.service.backlog import BINS, SECONDS
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
#: Answers that are less likely right than wrong.
DOUBTFUL = 0.5


def rows_of(stream: LiveStream, view: View, indexes: Sequence[int]) -> list[Row]:
    """Rows as they are now; an image without an answer is left out."""
    wanted = np.array(indexes, np.int64)
    if not len(wanted):
        return []
    by_id, known = view.by_id, stream.task.known
    rows, sure = stream.rows.at(wanted), stream.rows.confidence(wanted)
    # An edit may have settled what it says: as long as the answer is the one that was edited.
    seen = wanted < len(view)
    before = wanted[seen]
    same = np.zeros(len(wanted), bool)
    same[seen] = view.columns["score"][before] == np.array(rows["score"], np.float32)[seen]
    sure[same] = view.columns["confidence"][wanted[same]]
    found = []
    for place, (index, category) in enumerate(zip(indexes, rows["shown"])):
        if category == UNANSWERED:
            continue
        record = by_id.get(category)
        found.append(
            Row.model_construct(
                index=index,
                id=stream.journal.names[index],
                category=category,
                kind=record["kind"] if record else "known" if category < len(known) else "novel",
                name=record["name"] if record else category_name(known, category),
                score=rows["score"][place],
                confidence=float(sure[place]),
                provisional=not rows["final"][place],
                revised=category != rows["first"][place],
            )
        )
    return found


def stream_info(stream: LiveStream) -> StreamInfo:
    learner = stream.learner
    method = learner.method
    warmup = getattr(method, "warmup", None)
    progress = learner.phase
    return StreamInfo(
        name=stream.name,
        paused=stream.paused,
        images=len(stream.journal),
        learned=learner.next,
        finished=learner.finished,
        waiting=stream.waiting,
        warmup=warmup,
        warmed_up=learner.warmed_up,
        progress=None if progress is None else Progress(**progress),
        failed=learner.failed,
        known=stream.n_known,
        novel=len(stream.rows.categories_from(stream.n_known)),
        edits=len(stream.views.latest.edits),
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
        ],
        cursor=view.cursor,
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
        queue_over_time=stream.backlog.over_time(now),
        timeline=steps,
        rate=_rate(stream, now),
        rate_seconds=SECONDS,
    )


def _rate(stream: LiveStream, now: float) -> list[float]:
    """Images a second in the last ten minutes, oldest first."""
    ages = now - stream.journal.arrivals_since(now - SECONDS * BINS)
    bins = np.clip((ages / SECONDS).astype(int), 0, BINS - 1)
    counts = np.bincount(bins, minlength=BINS)[::-1]
    return [float(count) / SECONDS for count in counts]


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
