"""A live stream put down as the folder of a finished run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.edits.folder import CATEGORIES, ROWS, parquet_bytes
from ttgcd.discovery.insight import signs_of
from ttgcd.engines.folder import ANCHORS, FEATURES
from ttgcd.engines.run_record import Clock, manifest
from ttgcd.engines.table import resolve_aliases, schema
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, category_name
from ttgcd.report.findings import facts_of
from ttgcd.report.page import write_report
from ttgcd.report.run_files import RunFiles
from ttgcd.report.summary import StreamSummary
from ttgcd.report.verdict import judge
from ttgcd.storage.durable import write_atomic, writing
from ttgcd.storage.state import State
from ttgcd.storage.state_files import save_state
from ttgcd.streams.base import Batch, Source

if TYPE_CHECKING:
    import pyarrow

    from ttgcd.service.live import LiveStream

_AT_ONCE = 8192


class JournalSource(Source):
    """The images of a stream, for who draws pictures of them."""

    def __init__(self, stream: LiveStream, count: int) -> None:
        self._journal, self._count = stream.journal, count
        self.origin = f"stream {stream.name}"

    def __len__(self) -> int:
        return self._count

    def id(self, position: int) -> str:
        return self._journal.names[position]

    def read(self, position: int) -> bytes:
        return self._journal.read(position)


def assignments(stream: LiveStream, columns: dict[str, np.ndarray]) -> pyarrow.Table:
    """The rows as assignments.parquet shows them, without edits; a column ``confidence`` more."""
    import pyarrow as pa

    category = resolve_aliases(columns["category"], stream.rows.aliases)
    known = stream.task.known
    highest = int(category.max(initial=0))
    names = pa.array([category_name(known, c) for c in range(highest + 1)], pa.string())
    kinds = pa.array(["known", "novel"]).take(pa.array((category >= len(known)).astype(np.int8)))
    values: dict[str, Any] = {
        "id": pa.array(stream.journal.names[: len(category)], pa.string()),
        "category": pa.array(category, pa.int32()),
        "kind": kinds,
        "name": names.take(pa.array(category)),
        "score": pa.array(columns["score"]),
        "margin": pa.array(columns["margin"]),
        "batch": pa.array(columns["batch"], pa.int64()),
        "revised": pa.array(category != columns["first"]),
        "novelty": pa.array(columns["novelty"]),
        "confidence": pa.array(columns["confidence"], pa.float32()),
    }
    wanted = schema()
    if "confidence" not in wanted.names:
        wanted = wanted.append(pa.field("confidence", pa.float32()))
    return pa.Table.from_arrays([values[name] for name in wanted.names], schema=wanted)


def write_run(
    stream: LiveStream,
    out: Path,
    columns: dict[str, np.ndarray],
    categories: Sequence[dict[str, Any]],
) -> None:
    """Write assignments, categories, features, state and manifest into ``out``."""
    rows = len(columns["category"])
    with writing(out, "then try again"):
        (out / "state").mkdir(parents=True, exist_ok=True)
        write_atomic(out / ROWS, parquet_bytes(assignments(stream, columns)))
        write_atomic(out / CATEGORIES, _json({"format": 1, "categories": list(categories)}))
        features = stream.learner.features
        if rows and features.dim is not None and features.count >= rows:
            everything = np.lib.format.open_memmap(
                out / "state" / (FEATURES + ".tmp"), "w+", "<f2", shape=(rows, features.dim)
            )
            for start in range(0, rows, _AT_ONCE):
                stop = min(start + _AT_ONCE, rows)
                everything[start:stop] = features.read(start, stop)
            everything.flush()
            (out / "state" / (FEATURES + ".tmp")).replace(out / "state" / FEATURES)
        state, health, novel = _told(stream, rows)
        save_state(out / "state", state)
        vlm, clock = stream.vlm, Clock()
        record = manifest(
            clock,
            command=(),
            settings=stream.settings.describe(),
            model={"name": vlm.name, "sha256": vlm.fingerprint},
            input={"source": f"stream {stream.name}", "folder": None, "kind": "images",
                   "samples": rows, "fingerprint": ""},
            seconds=stream.learner.session.seconds,
        )  # fmt: skip
        record |= {
            "samples": rows,
            "rejected": 0,
            "resumed_at": None,
            "novel": novel,
            "count_trace": [],
            "notes": [],
            "health": health,
            "scores": None,
            "signs": None,
        }
        if rows and (signs := signs_of(out, stream.task.anchors)) is not None:
            record["signs"] = signs.as_json()
        write_atomic(out / "run.json", _json(record))
        record["verdict"] = judge(facts_of(RunFiles.read(out))).as_json()
        write_atomic(out / "run.json", _json(record))


def draw_report(stream: LiveStream, out: Path, columns: dict[str, np.ndarray]) -> Path:
    """The report of a folder that ``write_run`` has written."""
    rows = len(columns["category"])
    summary = StreamSummary(stream.n_known, 0, seed=stream.settings.seed)
    features = stream.learner.features
    with_features = features.count >= rows and rows > 0
    for start in range(0, rows, _AT_ONCE):
        stop = min(start + _AT_ONCE, rows)
        part = slice(start, stop)
        batch = Batch(
            ids=tuple(stream.journal.names[part]),
            start=start,
            positions=tuple(range(start, stop)),
            next_position=stop,
        )
        answer = Answer.make(
            start,
            resolve_aliases(columns["category"][part], stream.rows.aliases),
            columns["score"][part],
            columns["margin"][part],
            columns["novelty"][part],
            features=features.read(start, stop) if with_features else None,
        )
        summary.write(batch, answer)
    return write_report(out, summary=summary, source=JournalSource(stream, rows))


def _told(stream: LiveStream, rows: int) -> tuple[State, dict[str, Any], int | None]:
    """What the method says of itself; little while it is busy."""

    def look(method: Method) -> tuple[State, dict[str, Any], int | None]:
        return method.state_dict(), method.health(), method.novel

    found = stream.learner.inspect(look)
    state, health, novel = found if found is not None else (State({}, {}), {}, None)
    settings = {**stream.settings.describe(), "input": ""}
    counts = {"samples": rows, "batches": stream.rows.batches, "rejected": 0}
    arrays = {**state.arrays, ANCHORS: stream.task.anchors}
    return State(arrays, {**state.values, **counts, "settings": settings}), health, novel


def _json(value: Any) -> bytes:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")
