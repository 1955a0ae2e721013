"""A finished run, taken up again: its settings, its method, its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.edits.folder import EditedFolder
from ttgcd.discovery.edits.replay import FIRST_SPLIT_ID
from ttgcd.discovery.found import CATEGORIES, RUN, read_json
from ttgcd.discovery.insight import kept_features
from ttgcd.discovery.settings import Settings
from ttgcd.discovery.taught import Taught, Told
from ttgcd.engines.ahead import ahead_of
from ttgcd.engines.folder import ANCHORS
from ttgcd.engines.output import OutputFolder
from ttgcd.engines.session import Session
from ttgcd.errors import InputError
from ttgcd.methods.answer import Category
from ttgcd.methods.base import Method, Task
from ttgcd.prototypes.confidence import even_sample
from ttgcd.prototypes.text_evidence import speaks
from ttgcd.storage.state import State
from ttgcd.storage.state_files import load_state
from ttgcd.streams.base import Rejected
from ttgcd.streams.open import Spec, open_source
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Assigned:
    """Rows for images that were only assigned, and what could not be read."""

    table: pyarrow.Table
    rejected: tuple[Rejected, ...]


class SavedRun:
    """What a folder's ``state/`` and ``run.json`` say, checked when it is opened."""

    def __init__(self, out: str | Path) -> None:
        self.out = Path(out)
        if OutputFolder(self.out).standing() != "finished":
            raise InputError(f"{str(out)!r} holds no finished run: give the `out=...` of one")
        self.record = read_json(self.out / RUN)
        self.state = load_state(OutputFolder(self.out).state)
        self.settings = settings_of(self.record["settings"])
        self._session: Session | None = None

    def categories(self) -> list[Category]:
        """The run's categories as they are now, edits included."""
        records = read_json(self.out / CATEGORIES)["categories"]
        return [Category.from_json(record) for record in records]

    def method_state(self) -> State:
        """The method's own part of the state."""
        own = ("samples", "batches", "rejected", "settings")
        values = {key: value for key, value in self.state.values.items() if key not in own}
        arrays = {key: array for key, array in self.state.arrays.items() if key != ANCHORS}
        return State(arrays, values)

    def task(self, model: str | None = None) -> Task:
        """The run's task, with its model loaded; ``model`` is where the model is now."""
        values = self.state.values
        recorded = self.record["model"]
        vlm = None
        if recorded is not None:
            vlm = load_vlm(model or self.settings.model, self.settings.device)
            if vlm.fingerprint != recorded["sha256"]:
                raise InputError(
                    f"the run in {str(self.out)!r} was made with another model than "
                    f"{model or self.settings.model!r}: give that one, its features are meant"
                )
        return Task(
            known=tuple(values["known"]),
            anchors=np.array(self.state.arrays[ANCHORS]),
            novel=values["novel"],
            vlm=vlm,
            logit_scale=values["logit_scale"],
            seed=values["seed"],
            templates=tuple(self.settings.templates),
            precision=self.settings.precision,  # type: ignore[arg-type]
        )

    def named_texts(self, task: Task, promoted: bool = False) -> dict[int, np.ndarray]:
        """The text embeddings of the names that a user gave to categories, by id; with ``promoted``
        only of those that are known classes here already. None where there is no model to read
        them. A name that does not speak for the images that bear it is left out, its category is
        known by its looks alone. Categories that an edit made are not the method's."""
        records = [
            record
            for record in read_json(self.out / CATEGORIES)["categories"]
            if record.get("promoted" if promoted else "named")
            and record.get("merged_into") is None
            and record["id"] < FIRST_SPLIT_ID
        ]
        if task.vlm is None or not records:
            return {}
        texts = text_anchors(task.vlm, [record["name"] for record in records], task.templates)
        category = EditedFolder(self.out).replayed().assignments.column("category").to_numpy()
        features = kept_features(self.out, len(category))
        if features is None:
            return {}
        some = even_sample(len(features))
        rows, given = np.asarray(features[some], np.float32), category[some]
        return {
            record["id"]: text
            for record, text in zip(records, texts)
            if speaks(rows, given == record["id"], text)
        }

    def begins_with(self, task: Task, named: Mapping[int, np.ndarray]) -> State:
        """The method's state for a stream that goes on: it has heard of the names."""
        before, method = self.method_state(), self.settings.make_method()
        if type(method).promote is Method.promote:
            return before
        method.start(task)
        method.load_state_dict(before)
        return method.state_dict() if method.promote(named) else before

    def session(self) -> Session:
        """A session that stands where the run ended."""
        if self._session is None:
            method: Method = self.settings.make_method()
            self._session = Session(method, self.task(), begins_with=self.method_state())
        return self._session

    # -- assigning ----------------------------------------------------------------------------

    def predict(
        self, images: Spec, progress: Callable[[str, int, int], None] | None = None
    ) -> Assigned:
        """Rows for further images; nothing is learned. ``progress`` hears of the phase "assign"."""
        session = self.session()
        source = open_source(images)
        self.check_kind(source.kind, session.task)
        preprocess = None if session.task.vlm is None else session.task.vlm.preprocess
        stream = Stream(source, preprocess, self.settings.batch_size)
        task = session.task
        named = self.named_texts(task, promoted=True)
        taught = Taught(self.out, session.method.name, task.anchors, named)
        parts = []
        with stream:
            for batch in ahead_of(stream, session):
                parts.append((batch.ids, taught(session.predict(batch))))
                if progress is not None:
                    progress("assign", batch.next_position, stream.total)
        return Assigned(rows_of(parts, self.categories()), tuple(stream.rejected))

    def check_kind(self, kind: str, task: Task) -> None:
        """Images go to runs with a model, embeddings to runs without one."""
        expected = "embeddings" if task.vlm is None else "images"
        if kind != expected:
            raise InputError(f"the run in {str(self.out)!r} is on {expected}, these are {kind}")


def settings_of(record: dict[str, Any]) -> Settings:
    """The settings behind the record that ``Settings.describe`` made."""
    return Settings(
        known=tuple(record["known"]),
        novel=record["novel"],
        model=record["model"] or "none",
        templates=tuple(record["templates"]),
        method=record["method"],
        preset=None,
        changes=record["config"],
        batch_size=record["batch_size"],
        seed=record["seed"],
        shuffle=record["shuffle"],
        precision=record["precision"],
    )


def rows_of(parts: list[tuple[tuple[str, ...], Told]], categories: list[Category]) -> pyarrow.Table:
    """Answers as a table: merged categories under the id they have now, with today's names."""
    import pyarrow as pa

    by_id = {category.id: category for category in categories}

    def stands_for(category: int) -> Category:
        record = by_id.get(category, Category(category, "novel", f"category {category}"))
        while record.merged_into is not None:
            record = by_id[record.merged_into]
        return record

    answers = [told.answer for _, told in parts]
    sure = [told.confidence for _, told in parts if told.confidence is not None]
    found = [stands_for(int(c)) for answer in answers for c in answer.category]
    return pa.table(
        {
            "id": pa.array([name for ids, _ in parts for name in ids], pa.string()),
            "category": pa.array([record.id for record in found], pa.int32()),
            "kind": pa.array([record.kind for record in found], pa.string()),
            "name": pa.array([record.name for record in found], pa.string()),
            **{
                column: pa.array(
                    [float(value) for answer in answers for value in getattr(answer, column)],
                    pa.float32(),
                )
                for column in ("score", "margin", "novelty")
            },
            "confidence": pa.array(np.concatenate(sure), pa.float32())
            if len(sure) == len(parts) and sure
            else pa.nulls(len(found), pa.float32()),
        }
    )
