"""Further images, answered by what a run has become: with its corrections, and a confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ttgcd.discovery.edits.folder import EditedFolder
from ttgcd.discovery.insight import kept_features
from ttgcd.discovery.review import UNSURE
from ttgcd.methods.answer import Answer
from ttgcd.prototypes.confidence import Confidence, even_sample, shipped


@dataclass(frozen=True)
class Told:
    """An answer without its features, and how likely each row is right; None where the run kept
    too little to tell."""

    answer: Answer
    confidence: np.ndarray | None


class Taught:
    """What the images and the edits of a finished run say about further images.

    ``named`` are the categories that are known classes by their names (``Confidence``).
    """

    def __init__(
        self, out: Path, method: str, anchors: np.ndarray, named: Mapping[int, np.ndarray]
    ) -> None:
        after = EditedFolder(out).replayed()
        self._lessons = after.lessons
        self._confidence: Confidence | None = None
        category = after.assignments.column("category").to_numpy().astype(np.int64)
        features = kept_features(out, len(category))
        if features is None or (not len(anchors) and not named):
            return
        self._owner = {
            record["id"]: record["merged_into"]
            for record in after.categories
            if record.get("merged_into") is not None
        }
        some = even_sample(len(features))
        some = some[category[some] != UNSURE]
        if len(some):
            rows = np.asarray(features[some])
            self._confidence = Confidence(rows, category[some], anchors, shipped(method), named)

    def __call__(self, answer: Answer) -> Told:
        features, sure = answer.features, None
        if features is not None and self._lessons is not None:
            category = self._lessons.answer(features, answer.category)
            answer = replace(answer, category=category)
        if features is not None and self._confidence is not None:
            shown = np.array([self._stands_for(int(c)) for c in answer.category], np.int64)
            sure = self._confidence(features, shown, inside=False)
        return Told(replace(answer, features=None), sure)

    def _stands_for(self, category: int) -> int:
        while category in self._owner:
            category = self._owner[category]
        return category
