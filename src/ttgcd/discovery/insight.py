"""What is said about a finished run beyond its answers: confidence, names, questions to ask.

All of it is read off the run's own files, the features that it kept among them, so that it serves
every method and can be said again after an edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.engines.features import KeptFeatures
from ttgcd.engines.folder import FEATURES
from ttgcd.engines.in_order import in_order
from ttgcd.engines.table import add_columns
from ttgcd.prototypes.confidence import Confidence, shipped
from ttgcd.prototypes.naming import GroupNames, name_groups
from ttgcd.prototypes.questions import Question, next_questions
from ttgcd.report.run_files import Ids
from ttgcd.report.signs import Signs, read_signs

#: Samples that names and questions are found with, spread evenly over the stream.
MOST_SAMPLES = 8_192
#: Rows whose confidence is worked out together.
JUDGED_AT_ONCE = 4_096


@dataclass(frozen=True)
class Insight:
    """Names by category, and what to ask the user next."""

    names: dict[int, GroupNames] = field(default_factory=dict)
    questions: tuple[dict[str, Any], ...] = ()


def kept_features(out: Path, rows: int) -> KeptFeatures | None:
    """The features of a run's samples in the order of its table, if it kept them for every row."""
    try:
        features = KeptFeatures(out / "state" / FEATURES)
    except (OSError, ValueError):
        return None
    return features if len(features) == rows and rows else None


def look_closer(
    out: Path,
    n_known: int,
    words: Sequence[str] = (),
    word_embeddings: np.ndarray | None = None,
    *,
    exclude: Sequence[str] = (),
    ranked: bool = True,
) -> Insight:
    """Names for the novel categories of a run, and questions about it."""
    import pyarrow.parquet as pq

    table = pq.read_table(out / "assignments.parquet", columns=["category"])
    features = kept_features(out, table.num_rows)
    if features is None:
        return Insight()
    some = np.linspace(0, len(features) - 1, min(len(features), MOST_SAMPLES)).astype(np.int64)
    rows = np.asarray(features[some], np.float32)
    category = table.column("category").to_numpy()[some].astype(np.int64)
    novel = [int(c) for c in np.unique(category) if c >= n_known]
    names: dict[int, GroupNames] = {}
    if words and word_embeddings is not None:
        names = name_groups(
            rows, category, novel, words, word_embeddings, exclude=exclude, ranked=ranked
        )
    asked = next_questions(rows, category, novel)
    rows_asked = [int(some[q.row]) for q in asked if q.row is not None]
    ids = dict(zip(rows_asked, Ids(out / "assignments.parquet").of(rows_asked)))
    return Insight(names, tuple(_as_json(q, ids, some) for q in asked))


def signs_of(out: Path, anchors: np.ndarray) -> Signs | None:
    """What the answers of a run say about its names and groups; None where it kept no features."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(out / "assignments.parquet")
    features = kept_features(out, file.metadata.num_rows)
    if features is None:
        return None
    some = np.linspace(0, len(features) - 1, min(len(features), MOST_SAMPLES)).astype(np.int64)
    columns = [c for c in ("category", "confidence") if c in file.schema_arrow.names]
    table = file.read(columns)
    return read_signs(
        table.column("category").to_numpy(),
        table.column("confidence").to_numpy() if "confidence" in columns else None,
        np.asarray(features[some], np.float32),
        anchors,
    )


def _as_json(question: Question, ids: Mapping[int, str], some: np.ndarray) -> dict[str, Any]:
    record: dict[str, Any] = {
        "ask": question.ask,
        "categories": list(question.categories),
        "gain": round(question.gain, 3),
    }
    if question.row is not None:
        record["image"] = ids[int(some[question.row])]
    return record


def add_confidence(
    out: Path, method: str, anchors: np.ndarray, named: Mapping[int, np.ndarray]
) -> bool:
    """Give ``assignments.parquet`` its column ``confidence``; whether it could be worked out: the
    run must have kept features, and there must be a name that an answer can be right about.

    ``named`` are categories that got their name on an earlier run, with its text embedding.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not len(anchors) and not named:
        return False
    path = out / "assignments.parquet"
    category = pq.read_table(path, columns=["category"]).column("category").to_numpy()
    features = kept_features(out, len(category))
    if features is None:
        return False
    judge = Confidence.of_stream(features, category, anchors, shipped(method), named)

    def judged(begin: int) -> np.ndarray:
        rows = slice(begin, begin + JUDGED_AT_ONCE)
        return judge(features[rows], category[rows])

    blocks = range(0, len(category), JUDGED_AT_ONCE)
    sure = np.concatenate(list(in_order(judged, blocks)))

    def confidence(begin: int, group: pa.Table) -> dict[str, pa.Array]:
        return {"confidence": pa.array(sure[begin : begin + group.num_rows])}

    add_columns(path, {"confidence": pa.float32()}, confidence)
    return True
