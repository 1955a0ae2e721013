"""Discovery on a stream of features: answer at once, remember a sample, refit ever more rarely.

The state is one linear model, a uniform sample of the stream, and which ids the model's columns
have. Random numbers derive from the seed and the samples seen, so an interrupted stream goes on as
if it had not been.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ttgcd.prototypes.census import Census, take_census
from ttgcd.prototypes.curve import Curve
from ttgcd.prototypes.drift import CHANGED, Recent
from ttgcd.prototypes.lineage import Event, Lineage
from ttgcd.prototypes.linear_model import LinearModel
from ttgcd.prototypes.many import ROWS_OF_EACH, is_many
from ttgcd.prototypes.refit import Fitted, Restarts, Trust, fit
from ttgcd.prototypes.reservoir import Reservoir
from ttgcd.prototypes.text_evidence import Texts

#: The number of novel categories stays while it is within this share of what was counted.
_STEADY = 0.15
#: Below this reliability of the names, or where its range is wider than this ratio, the count is
#: not to be believed.
JUDGED, CLEAR = 0.45, 4.0
#: By how much a fresh start must beat what there is: within the stream, where a change of ids costs
#: more than it brings, and at its end, where everything is answered again.
_MARGIN, _LAST_MARGIN = 0.04, 0.0
#: Once the reservoir is full it changes slowly: from then on a refit follows at this growth.
_SLOWER = 1.5
#: A stream that has changed is refitted when it has grown by so much.
_SOON = 1.1
#: Fresh starts compete when the stream has grown so many times.
_ANEW, _ANEW_OF_MANY = 2, 3
#: Of many categories there are never more within the stream than one for so many rows.
ROWS_AT_LEAST = 4
_COUNT = 4  # purpose of random numbers; ``refit`` has the ones before


@dataclass(frozen=True)
class Schedule:
    """When the model is fitted, and how much is spent on it.

    Parameters
    ----------
    warmup
        Samples before the first fit.
    reservoir
        Samples kept for the fits that follow.
    growth
        A refit follows when so many times the samples of the last one have been seen; 1.5 times
        at least once the reservoir is full.
    restarts
        See ``refit.Restarts``; fresh restarts compete when the stream has doubled, and at its end.
    """

    warmup: int = 1024
    reservoir: int = 8192
    growth: float = 1.25
    restarts: Restarts = field(default_factory=lambda: Restarts(8, 4))


class Scout:
    """Known classes by name and novel ones by their looks, on one stream.

    Parameters
    ----------
    texts
        Names of the known classes, and words if there are any.
    novel
        L; None counts along the stream.
    seed, schedule
        Random numbers; when to fit.
    all_cores
        Entered for every fit, whose products are large.

    Attributes
    ----------
    lineage
        Ids, births and ends of categories.
    census
        The last count, None as long as there is none or L was given.
    moved
        At each refit, the share of the reservoir that changed its category.
    words
        Places of the words of each novel column.
    changes
        Samples seen when the stream was found to be no longer what the model was calibrated on.
    """

    def __init__(
        self,
        texts: Texts,
        novel: int | None,
        seed: int,
        schedule: Schedule,
        all_cores: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.texts, self.novel, self.seed, self.schedule = texts, novel, seed, schedule
        self._all_cores = all_cores
        self.reservoir = Reservoir(schedule.reservoir, seed)
        if novel is not None:
            self._make_room(len(texts.anchors) + novel)
        self.lineage = Lineage(len(texts.anchors))
        self.model: LinearModel | None = None
        self.trust = Trust(0.0, 0.0, 0.0)
        self.census: Census | None = None
        self.words = np.zeros((0, 0), np.int64)
        self.moved: list[float] = []
        self.changes: list[int] = []
        self.recent = Recent(texts.anchors.shape[1])
        self.spread, self.changed = 0.0, False
        self.last_fit = self.last_fresh = 0

    @property
    def seen(self) -> int:
        return self.reservoir.seen

    @property
    def judged(self) -> bool:
        """Whether it is clear how many categories there are, and which of them are novel."""
        if self.census is None or self.census.high > CLEAR * self.census.low:
            return False
        reliability = self.trust.reliability
        return reliability is None or reliability >= JUDGED

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """One column a living category; ``lineage.ids`` are their ids. Pure."""
        assert self.model is not None, "no fit yet"
        return self.model(rows)

    def learn(self, rows: np.ndarray) -> list[Event]:
        """Take rows into the reservoir and refit when it is time; answer them before, or after if
        this is the first fit."""
        self.reservoir.add(rows)
        self.recent.add(rows)
        if self.model is None:
            return self.refit(True) if self.seen >= self.schedule.warmup else []
        self._watch()
        if self.seen < self._growth() * self.last_fit:
            return []
        many = is_many(len(self.lineage.ids))
        return self.refit(self.seen >= (_ANEW_OF_MANY if many else _ANEW) * self.last_fresh)

    def _growth(self) -> float:
        """The growth of the stream at which the next refit follows the last."""
        growth = self.schedule.growth
        if self.changed:
            return min(_SOON, growth)
        slower = self.last_fit >= self.reservoir.capacity or is_many(len(self.lineage.ids))
        return max(_SLOWER, growth) if slower else growth

    def _watch(self) -> None:
        """Notice when recent samples lie elsewhere; once for each time that they do."""
        assert self.model is not None
        shift = self.recent.shift(self.model.space.geometry.mean, self.spread)
        if shift > CHANGED and not self.changed:
            self.changes.append(self.seen)
        self.changed = shift > CHANGED

    def refit(self, fresh: bool, last: bool = False) -> list[Event]:
        """Fit to the reservoir; with ``fresh`` trust is measured again and restarts compete."""
        with self._all_cores():
            return self._refit(fresh, last)

    def _refit(self, fresh: bool, last: bool) -> list[Event]:
        rows = self.reservoir.rows
        before = None if self.model is None else self.model.labels(rows)
        fitted: Fitted = fit(
            rows,
            self.texts,
            self._count(rows, fresh or self.changed, last),
            (self.seed, self.seen),
            self.schedule.restarts,
            before,
            self.lineage.novel,
            None if fresh else self.trust,
            _LAST_MARGIN if last else _MARGIN,
            self.lineage.named,
        )
        old = self.lineage.ids
        events = self.lineage.follow(before, fitted.labels, len(fitted.model.centres), self.seen)
        if before is not None:
            self.moved.append(float((old[before] != self.lineage.ids[fitted.labels]).mean()))
        self.model, self.trust, self.words = fitted.model, fitted.trust, fitted.words
        self.spread = float(rows.var(axis=0, dtype=np.float64).sum())
        self.last_fit = self.seen
        self.last_fresh = self.seen if fresh else self.last_fresh
        return events

    def _make_room(self, categories: int) -> None:
        """Let the reservoir grow where there are many categories."""
        if is_many(categories):
            self.reservoir.grow(ROWS_OF_EACH * categories)

    def promote(self, named: Mapping[int, np.ndarray]) -> None:
        """Categories that got a name are known classes from here on, by text and looks: ids and
        text embeddings. Those that had one and are not among them are novel again."""
        if self.model is None:
            return
        lineage, anchors = self.lineage, self.texts.anchors[: self.lineage.n_known]
        column = {int(c): at for at, c in enumerate(lineage.ids) if at >= lineage.n_known}
        chosen = {lineage.alias(c): text for c, text in named.items()}
        chosen = {c: text for c, text in chosen.items() if c in column}
        if not chosen and not lineage.named:
            return
        first = [*range(lineage.n_known), *(column.pop(c) for c in chosen)]
        order = np.array([*first, *sorted(column.values())], np.int64)
        self.texts = Texts.of(
            np.concatenate([anchors, *(text[None] for text in chosen.values())]),
            self.texts.words,
            self.texts.scale,
        )
        self.model = self.model.reordered(order)
        lineage.ids, lineage.named = lineage.ids[order], len(chosen)
        self.refit(False)

    def _count(self, rows: np.ndarray, anew: bool, last: bool) -> int:
        """L as given, or the known classes' complement to what was counted; ``anew`` counts again.
        Within the stream the number stays while it is about the same."""
        least = 0 if self.lineage.fixed else 1  # somewhere every sample must go
        if self.novel is not None:
            wanted = self.novel - self.lineage.named
            if is_many(len(self.texts.anchors) + wanted) and not last:
                wanted = min(wanted, len(rows) // ROWS_AT_LEAST - len(self.texts.anchors))
            return max(least, wanted)
        if not anew:
            return self.lineage.novel
        rng = np.random.default_rng((self.seed, self.seen, _COUNT))
        self.census = take_census(rows, self.texts, rng)
        self._make_room(round(self.census.total))
        n_known, now = len(self.texts.anchors), self.lineage.novel
        wanted = max(least, round(self.census.total) - n_known)
        steady = self.model is not None and not last
        return now if steady and abs(wanted - now) <= _STEADY * max(wanted, now) else wanted

    # -- memory -------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the state; ``values`` holds the rest."""
        out = {"rows": self.reservoir.rows, "index": self.reservoir.index, "words": self.words}
        out["ids"] = self.lineage.ids
        out["recent.sums"], out["recent.counts"] = self.recent.sums, self.recent.counts
        if self.model is not None:
            out.update({f"model.{key}": array for key, array in self.model.arrays().items()})
        return {key: np.array(array) for key, array in out.items()}

    def values(self) -> dict[str, Any]:
        """The plain values of the state, fit for JSON."""
        census, trust, lineage = self.census, self.trust, self.lineage
        return {
            "seen": self.seen,
            "capacity": self.reservoir.capacity,
            "last_fit": self.last_fit,
            "last_fresh": self.last_fresh,
            "trust": [trust.weight, trust.share, trust.reliability],
            "census": None if census is None else [census.total, census.low, census.high],
            "curve": None if census is None or census.curve is None else census.curve.as_json(),
            "moved": list(self.moved),
            "changes": list(self.changes),
            "changed": self.changed,
            "spread": self.spread,
            "named": lineage.named,
            "born": [[category, at] for category, at in lineage.born_at.items()],
            "ended": [[c, into, lineage.ended_at[c]] for c, into in lineage.ended.items()],
        }

    def load(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Go on from ``arrays`` and ``values``."""
        self.reservoir.grow(int(values.get("capacity", self.schedule.reservoir)))
        self.reservoir.load(arrays["rows"], arrays["index"], int(values["seen"]))
        self.words = arrays["words"]
        self.recent.sums, self.recent.counts = arrays["recent.sums"], arrays["recent.counts"]
        self.changes, self.changed = list(values["changes"]), bool(values["changed"])
        self.spread = float(values["spread"])
        born = {int(c): int(at) for c, at in values["born"]}
        ended = {int(c): into for c, into, _ in values["ended"]}
        ended_at = {int(c): int(at) for c, _, at in values["ended"]}
        named = int(values.get("named", 0))
        n_known = len(self.texts.anchors) - named
        self.lineage = Lineage(n_known, arrays["ids"], born, ended, ended_at, named)
        parts = {k.removeprefix("model."): a for k, a in arrays.items() if k.startswith("model.")}
        self.model = LinearModel.from_arrays(parts, self.texts) if parts else None
        self.trust = Trust(*values["trust"])
        curve = None if values.get("curve") is None else Curve.from_json(values["curve"])
        self.census = None
        if values["census"] is not None:
            total, low, high = values["census"]
            self.census = Census(total, low, high, curve)
        self.moved = list(values["moved"])
        self.last_fit, self.last_fresh = int(values["last_fit"]), int(values["last_fresh"])
