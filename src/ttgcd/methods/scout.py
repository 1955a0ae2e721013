"""Scout: known classes by name and looks, novel ones by looks and words, counted along the stream.

One linear score a category over a calibrated space, refitted to a uniform sample of the stream
each time it has grown by a quarter; texts count as far as clusters made without them bear them out.
Answers on arrival; at the end all rows are answered again by the last fit. The encoder is left as
it is. ``ttgcd.prototypes.scout_stream`` has the numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ttgcd.data.words import vocabulary
from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer, Born, Category, Event, Merged, Retired
from ttgcd.methods.base import Method, Task, features_of, named_category
from ttgcd.methods.zero_shot import text_says, zero_shot_rows
from ttgcd.prototypes import lineage
from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.curve import Curve
from ttgcd.prototypes.many import blocks
from ttgcd.prototypes.partition import centres_of
from ttgcd.prototypes.refit import Restarts
from ttgcd.prototypes.scout_stream import Schedule
from ttgcd.prototypes.scout_stream import Scout as Stream
from ttgcd.prototypes.text_evidence import Texts
from ttgcd.storage.state import State
from ttgcd.streams.base import Batch
from ttgcd.vlm.anchors import text_anchors


@dataclass(kw_only=True)
class Scout(Method):
    """The default method.

    Parameters
    ----------
    warmup
        Samples before the first fit; they are answered by it.
    reservoir
        Samples kept for the fits that follow: a uniform sample of the stream.
    growth
        A refit follows when so many times the samples of the last one have been seen; 1.5 times
        at least once the reservoir is full.
    restarts, fresh_restarts
        Restarts of the first fit, and of the competitors at later ones.
    words
        How many words to use, the task's own and then shipped ones, most likely first, when the
        task brings no embeddings and there is a model to encode them; 0 for none.
    revise_at_end
        Answer all rows again at the end of the stream.
    """

    name: ClassVar[str] = "scout"
    needs_names: ClassVar[bool] = False

    warmup: int = 1024
    reservoir: int = 8192
    growth: float = 1.25
    restarts: int = 8
    fresh_restarts: int = 4
    words: int = 1500
    revise_at_end: bool = True

    def __post_init__(self) -> None:
        for option, least in (("warmup", 1), ("restarts", 1), ("fresh_restarts", 1), ("words", 0)):
            if getattr(self, option) < least:
                raise InputError(f"{option} must be {least} or more, got {getattr(self, option)}")
        if self.reservoir < self.warmup:
            raise InputError(
                f"reservoir must be at least the warm-up ({self.warmup}), got {self.reservoir}"
            )
        if not self.growth > 1:
            raise InputError(f"growth must be above 1, got {self.growth}")

    def start(self, task: Task) -> None:
        super().start(task)
        self._over = False
        self._begin(self._words(task))

    def _begin(self, words: np.ndarray | None, named: np.ndarray | None = None) -> None:
        anchors = self.task.anchors
        if named is not None and len(named):
            anchors = np.concatenate([anchors, named])
        texts = Texts.of(anchors, words, self.task.logit_scale)
        restarts = Restarts(self.restarts, self.fresh_restarts)
        schedule = Schedule(self.warmup, self.reservoir, self.growth, restarts)
        task, caller = self.task, self.caller
        self._stream = Stream(texts, task.novel, task.seed, schedule, caller.all_cores)

    def _words(self, task: Task) -> np.ndarray | None:
        """Embeddings of words to compare with: the task's own, or the shipped ones."""
        if task.word_embeddings is not None:
            return task.word_embeddings
        words = (*task.words, *vocabulary())[: max(self.words, len(task.words))]
        if task.vlm is None or not words:
            return None
        return text_anchors(task.vlm, words, task.templates, allow_duplicates=True)

    # -- the stream ---------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether the warm-up is over."""
        return self._stream.model is not None

    def observe(self, batch: Batch) -> Answer:
        features = features_of(batch)
        self._over = False  # a stream that goes on from a finished one is not over
        stream = self._stream
        if stream.model is not None:
            return self._learn(features, self._answer(self.seen, features))
        self.seen += len(features)
        said = stream.learn(features)
        if stream.model is None:
            return Answer.empty()
        # The reservoir is larger than the warm-up: all rows so far are in it, in order.
        return replace(self._answer(0, stream.reservoir.rows), events=_events(said))

    def _learn(self, features: np.ndarray, answer: Answer) -> Answer:
        self.seen += len(features)
        return replace(answer, events=_events(self._stream.learn(features)))

    # -- answers made elsewhere (``engines/foretold.py``) --------------------------------------

    @property
    def fit(self) -> int | None:
        """The samples that had been seen at the last fit, by which rows are answered."""
        return None if self._stream.model is None else self._stream.last_fit

    def answering(self) -> State:
        """The state without the reservoir."""
        state = self.state_dict()
        none = {key: state.arrays[key][:0] for key in ("rows", "index")}
        return State({**state.arrays, **none}, state.values)

    def answer(self, batch: Batch) -> Answer:
        return replace(self._answer(batch.start, features_of(batch)), features=None)

    def observe_answered(self, batch: Batch, answer: Answer) -> Answer:
        features = features_of(batch)
        self._over = False
        index = np.arange(self.seen, self.seen + len(features), dtype=np.int64)
        return self._learn(features, replace(answer, index=index, features=features))

    def finish(self) -> Answer:
        stream, first = self._stream, self._stream.model is None
        self._over = True
        if self.seen == 0:
            return Answer.empty()
        if not first and not self.revise_at_end:
            return Answer.empty()
        events = _events(stream.refit(True, last=True))
        self._tell()
        if first:
            return replace(self._answer(0, stream.reservoir.rows), events=events)
        return replace(Answer.empty(), events=events, reassign=True)

    def revise(self, start: int, features: np.ndarray) -> Answer:
        return replace(self._answer(start, features), features=None)

    def predict(self, batch: Batch) -> Answer:
        answer = self._answer(batch.start, features_of(batch))
        return replace(answer, final=np.ones(len(answer), bool))

    def _answer(self, start: int, features: np.ndarray) -> Answer:
        """Rows by the model; by the names alone as long as there is none."""
        if self._stream.model is None:
            return zero_shot_rows(self.task, start, features, final=False)
        parts = blocks(len(features), len(self._stream.lineage.ids))
        said = [self._answer_block(start + part.start, features[part]) for part in parts]
        return Answer.concat(said, features) if said else Answer.empty()

    def _answer_block(self, start: int, features: np.ndarray) -> Answer:
        _, margin = text_says(self.task, features)
        scores = self._stream.scores(features)
        best, n_known = scores.argmax(axis=1), self._stream.lineage.fixed
        novelty = _lead(scores)
        if n_known:
            known = scores[:, :n_known].max(axis=1)
            novelty = scores[:, n_known:].max(axis=1, initial=-1.0) - known
        final = self._over or not self.revise_at_end
        ids = self._stream.lineage.ids[best]
        return Answer.make(start, ids, scores.max(axis=1), margin, novelty, final, features)

    def promote(self, named: Mapping[int, np.ndarray]) -> bool:
        self._stream.promote(named)
        return True

    def _tell(self) -> None:
        stream = self._stream
        if stream.changes:
            warnings.warn(
                f"the stream changed after about {stream.changes[0]:,} samples, in its looks or in "
                "its classes: the model was calibrated again on a sample of all that came. If the "
                "order means nothing, read it shuffled",
                stacklevel=2,
            )
        if stream.novel is None and stream.census is not None and not stream.judged:
            low, high = self.novel_range()
            why = "the known names fit this stream too little to count its novel categories: "
            if not self.task.n_known:
                why = "there are no names to count groups by: "
            warnings.warn(
                f"{why}{stream.lineage.novel} is a guess, between {low} and {high}; give their "
                "number with `novel=...` if you know it",
                stacklevel=2,
            )

    # -- what it wants ------------------------------------------------------------------------

    @property
    def wants_count(self) -> bool:
        """Never: it counts along the stream."""
        return False

    # -- what it found ------------------------------------------------------------------------

    @property
    def n_novel(self) -> int:
        return self._stream.lineage.next_id - self.task.n_known

    def novel_range(self) -> tuple[int, int]:
        """Between which numbers of novel categories the last count leaves room."""
        census, novel = self._stream.census, self._stream.lineage.novel
        if census is None:
            return novel, novel
        fixed = self._stream.lineage.fixed
        low, high = census.low - fixed, census.high - fixed
        return min(novel, max(0, int(low))), max(novel, int(np.ceil(high)))

    def prototypes(self) -> np.ndarray:
        """Mean direction of the members of every category in the reservoir."""
        stream = self._stream
        count = stream.lineage.next_id
        if stream.model is None:
            return np.zeros((count, self.task.anchors.shape[1]), np.float32)
        rows = stream.reservoir.rows
        labels = stream.lineage.ids[stream.model.labels(rows)]
        return centres_of(rows, labels, count)

    def categories(self) -> list[Category]:
        ids = self._stream.lineage
        records = []
        for category in range(max(1, ids.next_id)):
            record = named_category(self.task.known, category)
            if category in ids.born_at:
                into = ids.alias(category)
                record = replace(
                    record,
                    born_at=ids.born_at[category] - 1,
                    merged_into=None if into == category else into,
                    active=category not in ids.ended,
                )
            records.append(record)
        return records

    def health(self) -> dict[str, Any]:
        """How far the names are borne out, the count and its range, and what moved at refits."""
        stream = self._stream
        if stream.model is None:
            return {"warmed_up": False}
        low, high = self.novel_range()
        return {
            "warmed_up": True,
            "names_reliability": stream.trust.reliability,
            "novel": stream.lineage.novel,
            "novel_range": [low, high],
            "count_judged": stream.novel is not None or stream.judged,
            "refits_moved": list(stream.moved),
            "changes": list(stream.changes),
        }

    def count_curve(self) -> Curve | None:
        census = self._stream.census
        return None if census is None else census.curve

    # -- memory -------------------------------------------------------------------------------

    def state_dict(self) -> State:
        texts, n_known = self._stream.texts, self.task.n_known
        arrays = {"texts.words": texts.words.copy(), "texts.named": texts.anchors[n_known:].copy()}
        arrays |= self._stream.arrays()
        values = {"over": self._over, "stream": self._stream.values()}
        return State(arrays, {**self.described(self.seen), **values})

    def load_state_dict(self, state: State) -> None:
        self.check_described(state.values)
        self._over = state.values["over"]
        arrays = {key: np.array(array) for key, array in state.arrays.items()}
        self._begin(unit(arrays.pop("texts.words")), arrays.pop("texts.named", None))
        self._stream.load(arrays, state.values["stream"])


def _lead(scores: np.ndarray) -> np.ndarray:
    """By how much the best group is ahead of the second: where nothing is known, that is all that
    can be said of how near an answer was to another."""
    if scores.shape[1] < 2:
        return np.zeros(len(scores), scores.dtype)
    places = scores.argmax(axis=1)[:, None]
    best = np.take_along_axis(scores, places, 1)
    np.put_along_axis(scores, places, -np.inf, 1)
    lead: np.ndarray = best[:, 0] - scores.max(axis=1)
    np.put_along_axis(scores, places, best, 1)
    return lead


def _events(said: list[lineage.Event]) -> tuple[Event, ...]:
    """The stream counts samples seen, an answer's events the index of the last one."""
    out: list[Event] = []
    for event in said:
        at = event.seen - 1
        if isinstance(event, lineage.Birth):
            out.append(Born(event.category, at))
        elif event.into is None:
            out.append(Retired(event.category, at))
        else:
            out.append(Merged(event.category, event.into, at))
    return tuple(out)
