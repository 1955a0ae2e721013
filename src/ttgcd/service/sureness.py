"""How likely the answers of a stream are right: the probability that a folder run states."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ttgcd.engines.table import resolve_aliases
from ttgcd.prototypes.confidence import Confidence, even_sample, shipped

if TYPE_CHECKING:
    from ttgcd.service.learner import Learner

#: Answered images before anything is said about how likely they are right.
FEWEST = 64
#: The facts about the stream are taken again when its images have grown by this factor.
GROWTH = 1.25
#: And by this one, where there are answers of which they know nothing.
SOONER = 1.05
_AT_ONCE = 1024  # rows that others wait for


class Sureness:
    """Judges the rows of a stream from facts about it (``prototypes.confidence``).

    The facts are taken in the background each time the stream has grown by a quarter, then all rows
    are judged again; in between, further answers are judged by the facts of before, and those to a
    category that these do not know wait for the next, which then come sooner. At an end of the
    stream all rows are judged by the facts of all, as in a folder run.
    """

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._lock = threading.Lock()  # held by who takes facts or judges many rows
        self._state = threading.Lock()
        self._at = 0  # images that the facts are of
        self._wanted = self._running = self._stopped = False

    def look(self) -> None:
        """To be called when the method has got on: do what is due, in the background."""
        with self._state:
            self._wanted = True
            if self._running or self._stopped:
                return
            self._running = True
        threading.Thread(target=self._run, name="ttgcd-judge", daemon=True).start()

    def settle(self) -> None:
        """The stream is over: judge all rows by all rows, before anybody is told."""
        with self._lock:
            self._judge(self._learner.rows.answered())

    def stop(self) -> None:
        """Nothing more is judged."""
        self._stopped = True
        with self._lock:
            pass

    def _run(self) -> None:
        try:
            while self._next():
                with self._lock:
                    if not self._stopped:
                        self._catch_up()
        except BaseException:  # seen in the log; the next look tries again
            self._running = False
            raise

    def _next(self) -> bool:
        with self._state:
            self._running = self._wanted and not self._stopped
            self._wanted = False
            return self._running

    def _catch_up(self) -> None:
        rows = self._learner.rows
        answered = rows.answered()
        if answered < FEWEST:
            return
        if answered < GROWTH * self._at:
            self._judge_the_rest()
            # Those left belong to categories that the facts do not know.
            if answered < SOONER * self._at or not len(rows.unjudged()):
                return
        self._judge(answered)

    def _judge_the_rest(self) -> None:
        """Judge what has been answered or revised since, as far as the facts reach."""
        rows = self._learner.rows
        open_rows = rows.unjudged()
        for begin in range(0, len(open_rows), _AT_ONCE):
            some = open_rows[begin : begin + _AT_ONCE]
            rows.judge(some, self._learner.features.at(some))

    def _judge(self, answered: int) -> None:
        """New facts from the first ``answered`` rows, and a judgement of all of them."""
        rows, task = self._learner.rows, self._learner.task
        if not task.n_known:
            return  # nothing is named that an answer could be right about
        if not 0 < answered <= self._learner.features.count:
            return
        some = even_sample(answered)
        category = resolve_aliases(rows.column("category")[:answered], rows.aliases)
        rows.judged_by(
            Confidence(
                self._learner.features.at(some),
                category[some],
                task.anchors,
                shipped(self._learner.method.name),
            )
        )
        self._at = answered
        for begin in range(0, answered, _AT_ONCE):
            index = np.arange(begin, min(begin + _AT_ONCE, answered))
            rows.judge(index, self._learner.features.at(index), all_of_them=True)
