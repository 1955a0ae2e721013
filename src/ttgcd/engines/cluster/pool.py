"""A pool of encoding workers on Ray, shared by any number of streams."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ttgcd.engines.cluster.worker import Model, Range, ShardRange, Worker
from ttgcd.errors import InputError

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM

#: Room for what is on its way: features, and images while a method wants them.
OBJECT_STORE = 512 * 2**20


def require_ray() -> Any:
    """The ``ray`` package, without its usage statistics."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise InputError("the Ray engine needs the package ray: pip install 'ttgcd[ray]'") from None
    return ray


def connect(address: str | None, workers: int) -> bool:
    """Join a cluster, or start one in this machine; whether it was started here."""
    ray = require_ray()
    if ray.is_initialized():
        return False
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is not None:
            ray.init(address=address, **quiet)
        else:
            ray.init(
                address="local",  # or it would join whatever cluster somebody has started here
                num_cpus=workers,
                object_store_memory=OBJECT_STORE,
                include_dashboard=False,
                **quiet,
            )
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"cannot join the Ray cluster at {address or 'this machine'}: {reason}; see "
            "docs/scale.md for how to start one"
        ) from None
    return True


def model_of(vlm: VLM | None, name: str | None = None, device: str = "cpu") -> Model | None:
    """What workers load: by ``name`` where every node can find it, else the model itself."""
    if vlm is None:
        return None
    return Model(name or vlm.name, device, vlm.fingerprint, None if name else vlm)


@dataclass(frozen=True)
class Ticket:
    """A range that a worker has in hand: the reference of its answer, and whose it is."""

    reference: Any
    number: int
    actor: Any


class EncoderPool:
    """Workers that encode ranges of streams.

    Parameters
    ----------
    model
        What every worker loads, once; None for streams of embeddings.
    workers
        How many; each takes ``threads`` cores of the cluster, and ``gpus`` of its GPUs. None:
        as many as the cluster has room for.
    address
        An existing cluster ("auto", "ray://host:10001", "host:6379"); None starts one here, and
        stops it when the pool is closed.
    """

    def __init__(
        self,
        model: Model | None,
        workers: int | None = None,
        *,
        address: str | None = None,
        threads: int = 1,
        gpus: float = 0,
    ) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers must be 1 or more, got {workers}")
        cores = workers * threads if workers else os.cpu_count() or 1
        self._started_ray = connect(address, cores)
        ray = require_ray()
        if workers is None:
            room = ray.cluster_resources()
            fit = room.get("CPU", 0) // threads
            workers = max(1, int(min(fit, room.get("GPU", 0) // gpus) if gpus else fit))
        self.workers = workers
        self.replaced = 0  # workers that were lost
        self._lock = threading.Lock()
        self._waiting = [0] * workers
        self._suspect = [False] * workers
        self._make = ray.remote(Worker).options(num_cpus=threads, num_gpus=gpus).remote
        self._arguments = (None if model is None else ray.put(model), threads)
        self._actors: list[Any] = []
        self._greetings: list[Any] = []  # answered once a worker has its weights, then None
        for _ in range(workers):
            self._actors.append(self._make(*self._arguments))
            self._greetings.append(self._actors[-1].process.remote())

    def submit(self, work: Range | ShardRange) -> Ticket:
        """Hand a range to the worker with the least to do."""
        with self._lock:
            number = min(range(self.workers), key=self._burden)
            self._waiting[number] += 1
            actor = self._actors[number]
        call = actor.encode if isinstance(work, Range) else actor.observe
        return Ticket(call.remote(work), number, actor)

    def _burden(self, number: int) -> tuple[bool, int]:
        greeting = self._greetings[number]
        if greeting is not None and require_ray().wait([greeting], timeout=0)[0]:
            greeting = self._greetings[number] = None
        return self._suspect[number] or greeting is not None, self._waiting[number]

    def answered(self, ticket: Ticket) -> None:
        """A worker has answered."""
        with self._lock:
            if self._actors and ticket.actor is self._actors[ticket.number]:
                self._waiting[ticket.number] -= 1
                self._suspect[ticket.number] = False

    def failed(self, ticket: Ticket) -> None:
        """A worker, or what it had answered, is gone: another takes its place.

        Not left to Ray, which gives up on a worker whose start fails once. What the worker had in
        hand is asked for again by the stream, which knows whether it still needs it.
        """
        number = ticket.number
        with self._lock:
            if not self._actors or ticket.actor is not self._actors[number]:
                return  # replaced already
            require_ray().kill(ticket.actor)  # it may live on behind a broken network
            self._actors[number] = self._make(*self._arguments)
            self._greetings[number] = self._actors[number].process.remote()
            self._waiting[number], self._suspect[number] = 0, False
            self.replaced += 1

    def suspect(self, ticket: Ticket) -> None:
        """A worker has not answered for long: others come first until it does."""
        with self._lock:
            if self._actors and ticket.actor is self._actors[ticket.number]:
                self._suspect[ticket.number] = True

    def others(self, slow: set[int]) -> bool:
        """Whether a worker that is none of these is at hand."""
        with self._lock:
            hands = (number for number in range(self.workers) if number not in slow)
            return any(not self._burden(number)[0] for number in hands)

    def processes(self) -> list[int]:
        """The workers' processes, once all have their weights."""
        return require_ray().get([actor.process.remote() for actor in self._actors])

    def forget(self, stream: str) -> None:
        """A stream is over: workers let go of its source."""
        for actor in self._actors:  # none once the pool is closed
            actor.forget.remote(stream)

    def close(self) -> None:
        """End the workers, and the cluster if it was started here."""
        ray = require_ray()
        if not ray.is_initialized():
            return
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        if self._started_ray:
            ray.shutdown()

    def __enter__(self) -> EncoderPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
