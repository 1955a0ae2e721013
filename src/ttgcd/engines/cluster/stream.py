"""A stream whose batches come from a pool of workers, in order, with their features.

Batch n + 1 begins where batch n ended, and that is only known when batch n has been read: samples
that are set aside move it. So places are guessed: every sample is taken to be readable, and when a
range turns out to end elsewhere, the ranges behind it are planned again. What was learned about
unreadable samples is kept, so a range is read at most twice on their account.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections import Counter, deque
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from ttgcd.engines.cluster.fits import SharedFit, with_answer
from ttgcd.engines.cluster.pool import EncoderPool, Ticket, require_ray
from ttgcd.engines.cluster.worker import Done, Norms, Range, StreamFacts
from ttgcd.engines.session import check_features
from ttgcd.errors import InputError
from ttgcd.methods.base import Method
from ttgcd.streams.base import Batch, Rejected, Source
from ttgcd.streams.stream import Stream
from ttgcd.vlm.encoder import encoder_fingerprint

#: Ranges under way for each worker: one in hand, others waiting so that it never idles.
AHEAD = 4
#: Bytes of decoded images that may be under way while a method wants images.
IMAGE_BYTES = 256 * 2**20
#: After so many losses of all that is under way, without one range done, a run gives up.
MOST_FAILURES = 20
_POLL = 0.5


@dataclass
class _Asked:
    """A range that was handed out, perhaps to several workers."""

    version: int
    images: bool
    features: bool
    since: float
    tickets: list[Ticket] = field(default_factory=list)


class PooledStream(Stream):
    """Batches of a source in stream order, read and encoded by a pool.

    It looks at the method before every batch: under which norms the stream is to be encoded, and
    whether images are wanted. Ranges that were encoded under other norms are asked for again.

    ``patience`` seconds, or five times what a range usually takes if that is longer, may pass until
    the range that is due is given to a second worker as well.
    """

    independent = False

    def __init__(
        self,
        source: Source,
        method: Method,
        pool: EncoderPool,
        batch_size: int = 128,
        shuffle_seed: int | None = None,
        start_position: int = 0,
        start_index: int | None = None,
        patience: float = 10.0,
    ) -> None:
        super().__init__(
            source,
            preprocess=_no_pixels_here,
            batch_size=batch_size,
            shuffle_seed=shuffle_seed,
            start_position=start_position,
            start_index=start_index,
            workers=0,
        )
        self.pool = pool
        self.patience = patience
        self.repeated = 0  # ranges that were asked for again, for whatever reason
        self.losses: Counter[str] = Counter()  # workers and answers that were lost, by Ray's error
        self._method = method
        self._seed = shuffle_seed
        self._name = uuid.uuid4().hex

    def _batches(self) -> Generator[Batch, None, None]:
        self._begin()
        place, index = self.start_position, self.start_index
        waiting: list[Rejected] = []
        try:
            while place < self.total:
                done = self._next(place)
                place = done.after
                waiting += done.rejected
                if done.batch is None:
                    continue
                self.rejected += waiting
                waiting = []
                batch = self._batch_of_done(done, index)
                index += len(batch)
                del done
                yield batch
            self.rejected += waiting
        finally:
            self._end()

    def _batch_of_done(self, done: Done, index: int) -> Batch:
        import torch

        assert done.batch is not None
        # Copies: what Ray hands over lies in the object store, which is to be free again.
        features, images = done.batch.features, None
        if done.version != self._version and self.source.kind == "images":
            features = None
        if features is not None:
            features = np.array(features)
            check_features(done.batch, features)
        if done.pixels is not None:
            images = torch.from_numpy(np.array(done.pixels))
        batch = replace(done.batch, start=index, features=features, images=images)
        return with_answer(batch, done)

    # -- the plan -----------------------------------------------------------------------------

    def _begin(self) -> None:
        precision = self._method.task.precision
        self._fit = SharedFit(self._method)
        facts = StreamFacts(
            self.source, self.batch_size, self._seed, precision, copy=self._fit.copy
        )
        self._reference = [shared(facts)]
        self._version, self._fingerprint = 0, ""
        self._norms: Norms | None = None
        self._norms_reference: list[Any] = []
        self._chain: deque[int] = deque()  # places where the ranges ahead begin
        self._guess: dict[int, int] = {}  # where each of them was thought to end
        self._plan_from = self.start_position
        self._asked: dict[int, _Asked] = {}
        self._answers: dict[Any, tuple[int, Ticket]] = {}  # by reference
        self._done: dict[int, Done] = {}
        self._bad: set[int] = set()  # places that are known to be set aside
        self._seconds: deque[float] = deque(maxlen=32)
        self._failures = 0

    def _end(self) -> None:
        for _, ticket in self._answers.values():
            self.pool.answered(ticket)
        self._answers.clear()
        self._done.clear()
        self.pool.forget(self._name)

    def _next(self, place: int) -> Done:
        """The range that begins at ``place``, under the norms of now."""
        self._look_at_method()
        while True:
            self._hand_out()
            assert self._chain[0] == place
            if place in self._done:
                self._chain.popleft()
                del self._asked[place], self._guess[place]
                if self._bad:
                    self._bad = {bad for bad in self._bad if bad >= place}
                return self._done.pop(place)
            self._collect()
            self._help(place)

    def _look_at_method(self) -> None:
        """New norms make a new version; what was encoded under another is let go."""
        norms = self._method.norms()
        if norms is not self._norms:
            fingerprint = "" if norms is None else encoder_fingerprint("", norms)
            if fingerprint != self._fingerprint:
                self._version += 1
                self._fingerprint = fingerprint
                self._norms_reference = [] if norms is None else [require_ray().put(dict(norms))]
            self._norms = norms
        self._fit.look()
        for place in [p for p, asked in self._asked.items() if not self._serves(asked)]:
            del self._asked[place]
            self._done.pop(place, None)

    def _serves(self, asked: _Asked) -> bool:
        if self.source.kind == "embeddings":
            return True
        if self._method.wants_images:  # the session can encode them under whatever norms
            return asked.images
        return asked.version == self._version and (asked.features or not self._wants_features())

    def _wants_features(self) -> bool:
        return self._method.wants_features or self._method.wants_count

    def _window(self) -> int:
        whole = AHEAD * self.pool.workers
        if not self._method.wants_images or self._method.task.vlm is None:
            return whole
        size = self._method.task.vlm.preprocess.size
        return max(2, min(whole, IMAGE_BYTES // (self.batch_size * 3 * size**2)))

    def _guess_after(self, place: int) -> int:
        """Where a range ends if nothing in it is set aside but what is known to be."""
        after, missing = place, self.batch_size
        while missing and after < self.total:
            missing -= after not in self._bad
            after += 1
        return after

    def _hand_out(self) -> None:
        """Keep the window full; ask again for what was let go."""
        window = self._window()
        while len(self._chain) < window and self._plan_from < self.total:
            start, self._plan_from = self._plan_from, self._guess_after(self._plan_from)
            self._chain.append(start)
            self._guess[start] = self._plan_from
        for start in islice(self._chain, window):
            if start not in self._asked:
                self._ask(start)

    def _plan_again(self, place: int, after: int) -> None:
        """The range at ``place`` ends elsewhere than was thought: so do all behind it."""
        while self._chain[-1] > place:
            gone = self._chain.pop()
            del self._guess[gone]
            self._asked.pop(gone, None)
            self._done.pop(gone, None)
        self._plan_from = after

    def _ask(self, place: int) -> None:
        asked = self._asked.get(place)
        if asked is None:
            images = self._method.wants_images and self.source.kind == "images"
            # A method that goes on training has new norms for every batch: the session encodes.
            features = self._wants_features() and not (images and self._version > 0)
            asked = _Asked(self._version, images, features, time.monotonic())
            self._asked[place] = asked
        else:
            self.repeated += 1
        work = Range(
            stream=self._name,
            facts=self._reference,
            place=place,
            version=asked.version,
            norms=self._norms_reference,
            features=asked.features,
            images=asked.images,
            fit=self._fit.number,
            answering=self._fit.reference,
        )
        ticket = self.pool.submit(work)
        asked.tickets.append(ticket)
        self._answers[ticket.reference] = place, ticket

    # -- answers ------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Wait for an answer, and take in all that are there."""
        ray = require_ray()
        there, _ = ray.wait(list(self._answers), num_returns=1, timeout=_POLL)
        if there:
            more, _ = ray.wait(list(self._answers), num_returns=len(self._answers), timeout=0)
            there = list({*there, *more})
        for reference in sorted(there, key=lambda r: self._answers[r][0]):
            place, ticket = self._answers.pop(reference)
            try:
                done: Done = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                self.pool.answered(ticket)
                raise error.cause if isinstance(error.cause, InputError) else error from None
            except ray.exceptions.RayError as error:  # the worker, its node or its answer is gone
                self.losses[type(error).__name__] += 1
                self.pool.failed(ticket)
                self._lost(place, ticket, error)
                continue
            self.pool.answered(ticket)
            self._failures = 0
            self._take(place, done)

    def _take(self, place: int, done: Done) -> None:
        self._seconds.append(done.seconds)
        self._bad.update(rejected.place for rejected in done.rejected)
        asked = self._asked.get(place)
        if asked is None or done.version != asked.version or place in self._done:
            return  # planned otherwise since, or a second answer
        if (done.pixels is None and asked.images and done.batch is not None) or (
            done.batch is not None and asked.features and done.batch.features is None
        ):
            return  # an answer to an earlier question
        self._done[place] = done
        if done.after != self._guess[place]:
            self._plan_again(place, done.after)

    def _lost(self, place: int, ticket: Ticket, error: Exception) -> None:
        self._failures += 1
        if self._failures > MOST_FAILURES * AHEAD * self.pool.workers:
            raise unusable(self._failures, error)
        asked = self._asked.get(place)
        if asked is None or place in self._done:
            return
        if ticket in asked.tickets:
            asked.tickets.remove(ticket)
        if not asked.tickets:
            self._ask(place)

    def _help(self, place: int) -> None:
        """A straggler holds everybody up: give what it has to others as well."""
        usual = statistics.median(self._seconds) if self._seconds else 0.0
        asked = self._asked.get(place)
        limit = max(self.patience, 5 * usual)
        if asked is None or place in self._done or not asked.tickets:
            return
        slow = {ticket.number for ticket in asked.tickets}
        if time.monotonic() - asked.since < limit or not self.pool.others(slow):
            return
        for ticket in asked.tickets:
            self.pool.suspect(ticket)
        for start, other in list(self._asked.items()):
            if start not in self._done and {ticket.number for ticket in other.tickets} <= slow:
                other.since = time.monotonic()
                self._ask(start)


def shared(facts: StreamFacts) -> Any:
    """A reference under which workers find the source."""
    try:
        return require_ray().put(facts)
    except TypeError as error:
        raise InputError(
            f"this kind of source cannot be sent to workers ({error}): give files, or an array"
        ) from None


def unusable(failures: int, error: Exception) -> InputError:
    """Workers die faster than they work."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return InputError(
        f"workers of the pool died {failures} times in a row ({reason}): too little memory on a "
        "node, perhaps; go on with `resume=True` and fewer workers"
    )


def _no_pixels_here(image: np.ndarray) -> Any:
    raise RuntimeError("images are decoded in the workers")
