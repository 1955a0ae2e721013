"""Spread the streams of an experiment over a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ttgcd.engines.cluster.pool import connect, require_ray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ttgcd.bench.results import Job, Row

Measured = tuple["Job", "Row | None", str]
#: A stream is measured again if its worker or its node is lost, so many times.
_TRIES = 3


def measured_on_ray(
    groups: Sequence[Sequence[tuple[Job, int | None]]],
    work: Callable[[Sequence[Any]], Iterable[Measured]],
    workers: int,
    threads: int,
    address: str | None,
) -> Iterator[Measured]:
    """Rows as their streams are done; all jobs of a stream stay together, for they share its
    features. Every node must see the data under the same paths."""
    ray = require_ray()
    started = connect(address, workers * threads)
    remote = ray.remote(num_cpus=threads, max_retries=_TRIES)(_measure)
    running = {remote.remote(work, group): group for group in groups}
    try:
        while running:
            there, _ = ray.wait(list(running), num_returns=1)
            group = running.pop(there[0])
            try:
                yield from ray.get(there[0])
            except ray.exceptions.RayError as error:
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                for job, _ in group:
                    yield job, None, f"lost on the cluster: {reason}"
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        if started:
            ray.shutdown()


def _measure(work: Callable[[Sequence[Any]], Iterable[Measured]], group: Any) -> list[Measured]:
    return list(work([group]))
