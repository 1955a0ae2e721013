"""Split every batch into known and novel, cluster the novel samples when the stream ends.

The shared pipeline of the paper's App. A: maximum cosine to the known anchors, a two-component
mixture a batch, argmax over the anchors for known samples, k-means with k = L for novel ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Method, Task, features_of
from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.clusters import kmeans, nearest
from ttgcd.prototypes.mixture import known_mask
from ttgcd.prototypes.text_labels import pseudo_labels, zero_shot_probabilities
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch


class Look(NamedTuple):
    """What a method saw of a batch: unit features, the anchors they are compared with, and which
    of the samples the mixture calls known."""

    features: np.ndarray
    anchors: np.ndarray
    known: np.ndarray


@dataclass(kw_only=True)
class SplitThenCluster(Method):
    """Answers known samples on arrival; novel ones get the id K until the stream is over.

    Novel features are kept as computed when the sample passed.
    """

    answers: ClassVar[Literal["arrival", "end"]] = "end"

    def start(self, task: Task) -> None:
        super().start(task)
        self.centres: np.ndarray | None = None
        self._known_seen = 0
        self._novel: list[dict[str, np.ndarray]] = []

    def look(self, batch: Batch) -> Look:
        """Encode and split a batch; a method that learns does so here."""
        return self.glance(batch)

    def glance(self, batch: Batch) -> Look:
        """Encode and split a batch without learning."""
        features = features_of(batch)
        anchors = self.current_anchors()
        return Look(features, anchors, self.split(features @ anchors.T))

    def current_anchors(self) -> np.ndarray:
        """The anchors that known samples are compared with."""
        return self.task.anchors

    def split(self, cosines: np.ndarray) -> np.ndarray:
        """Mask of the known samples of a batch."""
        return known_mask(cosines.max(axis=1), self.task.seed)

    def observe(self, batch: Batch) -> Answer:
        look = self.look(batch)
        rows = self._rows(batch.start, look)
        novel = self._novel_rows(look)
        columns = ("index", "margin", "novelty", "features")
        kept = {column: getattr(rows, column)[novel] for column in columns}
        self._novel.append({**kept, **self.keep(batch, novel)})
        self.seen += len(batch)
        self._known_seen += int(len(batch) - novel.sum())
        return rows

    def keep(self, batch: Batch, novel: np.ndarray) -> dict[str, np.ndarray]:
        """More of the novel samples that must be remembered until the end."""
        return {}

    def finish(self) -> Answer:
        if not self.seen:
            return Answer.empty()
        kept = self._remembered()
        features = self.novel_features(kept)
        clusters = kmeans(features, self.n_novel, self.task.seed)
        self.centres = normalise(clusters.centres)
        if not len(self.centres):
            return Answer.empty()
        score = np.einsum("nd,nd->n", features, self.centres[clusters.labels])
        return Answer(
            index=kept["index"],
            category=self.task.n_known + clusters.labels,
            score=score.astype(np.float32),
            margin=kept["margin"],
            final=np.ones(len(features), bool),
            novelty=kept["novelty"],
            features=features,
        )

    def novel_features(self, kept: dict[str, np.ndarray]) -> np.ndarray:
        """The features that are clustered."""
        return kept["features"]

    def predict(self, batch: Batch) -> Answer:
        look = self.glance(batch)
        rows = self._rows(batch.start, look)
        novel = self._novel_rows(look)
        if self.centres is not None and len(self.centres) and novel.any():
            label = nearest(look.features[novel], self.centres)
            rows.category[novel] = self.task.n_known + label
            rows.score[novel] = np.einsum("nd,nd->n", look.features[novel], self.centres[label])
            rows.final[novel] = True
        return rows

    def prototypes(self) -> np.ndarray:
        task = self.task
        rows = np.zeros((task.n_known + self.n_novel, task.anchors.shape[1]), np.float32)
        rows[: task.n_known] = self.current_anchors()
        if self.centres is not None:
            rows[task.n_known : task.n_known + len(self.centres)] = self.centres
        return rows

    def health(self) -> dict[str, Any]:
        return {
            "known_share": self._known_seen / self.seen if self.seen else None,
            "novel_clusters": None if self.centres is None else len(self.centres),
        }

    # -- answers ------------------------------------------------------------------------------

    def _novel_rows(self, look: Look) -> np.ndarray:
        return ~look.known if self.novel != 0 else np.zeros(len(look.known), bool)

    def _rows(self, start: int, look: Look) -> Answer:
        """Known samples by argmax over the anchors, final; novel ones provisionally K."""
        cosines = look.features @ look.anchors.T
        _, margins = pseudo_labels(
            zero_shot_probabilities(look.features, look.anchors, self.task.logit_scale)
        )
        rows = Answer.make(
            start,
            cosines.argmax(axis=1),
            cosines.max(axis=1),
            margins,
            novelty=-cosines.max(axis=1),
            features=look.features,
        )
        novel = self._novel_rows(look)
        rows.category[novel] = self.task.n_known
        rows.final[novel] = False
        return rows

    # -- memory -------------------------------------------------------------------------------

    def _remembered(self) -> dict[str, np.ndarray]:
        return {key: np.concatenate([part[key] for part in self._novel]) for key in self._novel[0]}

    def state_dict(self) -> State:
        arrays = {"anchors": self.task.anchors.astype(np.float32)}
        if self._novel:
            for key, column in self._remembered().items():
                arrays[f"novel/{key}"] = column
        if self.centres is not None:
            arrays["novel_centres"] = self.centres
        return State(arrays, {**self.described(self.seen), "known_seen": self._known_seen})

    def load_state_dict(self, state: State) -> None:
        arrays, values = state
        self.check_described(values)
        self._known_seen = values["known_seen"]
        kept = {
            key.removeprefix("novel/"): np.array(array)
            for key, array in arrays.items()
            if key.startswith("novel/")
        }
        self._novel = [kept] if kept else []
        self.centres = np.array(arrays["novel_centres"]) if "novel_centres" in arrays else None
