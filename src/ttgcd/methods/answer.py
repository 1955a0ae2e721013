"""What crosses the border between a method and its caller: answers, events, categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Born:
    """A novel category was opened when the stream index ``at`` was reached."""

    category: int
    at: int


@dataclass(frozen=True)
class Merged:
    """A category turned out to be another one: from now on its id is an alias of ``into``."""

    category: int
    into: int
    at: int


@dataclass(frozen=True)
class Retired:
    """A category lost all of its samples to several others; its id is never given again."""

    category: int
    at: int


Event = Born | Merged | Retired


@dataclass(frozen=True)
class Category:
    """One category: what the method knows of it, and what the run adds (count, examples, names).

    Known class k has the id k, in the order in which the user named them; novel ones follow in
    the order of birth. Ids are stable for ever: a merged category keeps its id and points to the
    other one. ``good_name`` is the first suggested name where its images agree on it.
    """

    id: int
    kind: Literal["known", "novel"]
    name: str
    count: int = 0
    suggested_names: tuple[str, ...] = ()
    good_name: str | None = None
    exemplars: tuple[str, ...] = ()
    evidence: float | None = None
    active: bool | None = None
    born_at: int | None = None
    merged_into: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The record in ``categories.json``; what does not apply is left out."""
        record = asdict(self)
        for key in ("suggested_names", "exemplars"):
            record[key] = list(record[key])
        for key in ("good_name", "evidence", "active", "born_at", "merged_into"):
            if record[key] is None:
                del record[key]
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Category:
        known = {key: record[key] for key in cls.__dataclass_fields__ if key in record}
        for key in ("suggested_names", "exemplars"):
            known[key] = tuple(known.get(key, ()))
        return cls(**known)


@dataclass(frozen=True)
class Answer:
    """Answers, one row a sample; rows of earlier samples are revisions.

    ``category`` is k for known class k and K + l for novel category l; ``score`` the similarity to
    the category's prototype; ``margin`` the zero-shot confidence omega (Eq. 2); ``novelty`` grows
    with the evidence that the sample is of no known class; ``final`` is False while the method may
    still revise the row.

    Beside the rows: ``events`` tell of categories that were born, merged or retired; ``norms`` are
    LayerNorm parameters under which the stream is encoded from the next batch on; ``reassign`` asks
    the caller to hand all features seen so far to ``Method.revise``.
    """

    index: np.ndarray
    category: np.ndarray
    score: np.ndarray
    margin: np.ndarray
    final: np.ndarray
    novelty: np.ndarray
    features: np.ndarray | None = None
    events: tuple[Event, ...] = ()
    norms: Mapping[str, np.ndarray] | None = None
    reassign: bool = False

    def __len__(self) -> int:
        return len(self.index)

    @classmethod
    def make(
        cls,
        start: int,
        category: np.ndarray,
        score: np.ndarray,
        margin: np.ndarray | None = None,
        novelty: np.ndarray | None = None,
        final: bool = True,
        features: np.ndarray | None = None,
    ) -> Answer:
        """Rows for consecutive samples beginning at stream index ``start``."""
        n = len(category)
        zeros = np.zeros(n, np.float32)
        return cls(
            index=np.arange(start, start + n, dtype=np.int64),
            category=np.asarray(category, np.int64),
            score=np.asarray(score, np.float32),
            margin=zeros if margin is None else np.asarray(margin, np.float32),
            final=np.full(n, final),
            novelty=zeros if novelty is None else np.asarray(novelty, np.float32),
            features=features,
        )

    @classmethod
    def empty(cls) -> Answer:
        return cls.make(0, np.empty(0), np.empty(0))

    @classmethod
    def concat(cls, parts: Sequence[Answer], features: np.ndarray | None = None) -> Answer:
        """Rows of several answers, in the order given; ``features`` are those of all rows, for a
        caller who has them in one array already."""
        beside: dict[str, Any] = {
            "events": tuple(event for part in parts for event in part.events),
            "norms": next((p.norms for p in reversed(parts) if p.norms is not None), None),
            "reassign": any(part.reassign for part in parts),
        }
        parts = [part for part in parts if len(part)]
        if not parts:
            return replace(cls.empty(), **beside)
        if len(parts) == 1:
            return replace(parts[0], **beside)
        names = ("index", "category", "score", "margin", "final", "novelty")
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(p, name) for p in parts]) for name in names
        }
        whole = [p.features for p in parts if p.features is not None]
        if features is None and len(whole) == len(parts):
            features = np.concatenate(whole)
        return cls(**columns, features=features, **beside)

    def at(self, rows: np.ndarray) -> Answer:
        """The selected rows (boolean mask or positions)."""
        names = ("index", "category", "score", "margin", "final", "novelty")
        columns = {name: getattr(self, name)[rows] for name in names}
        return replace(
            self, **columns, features=None if self.features is None else self.features[rows]
        )
