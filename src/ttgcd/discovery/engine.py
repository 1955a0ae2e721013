"""Who reads and encodes the samples of a discovery: this process, or a pool of workers on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ttgcd.errors import InputError

if TYPE_CHECKING:
    from ttgcd.discovery.inputs import Inputs
    from ttgcd.engines.cluster.pool import EncoderPool
    from ttgcd.methods.base import Method
    from ttgcd.streams.stream import Stream

Kind = Literal["local", "ray"]
MakeStream = Callable[[int, int], "Stream"]


@dataclass(frozen=True)
class Engine:
    """Where the work is done; the answers do not depend on it, except by ``sync_every``.

    Parameters
    ----------
    kind
        "local" is this process, "ray" a pool of workers on a Ray cluster.
    workers
        How many; None takes what the cluster has room for.
    ray_address
        An existing cluster ("auto", "ray://host:10001"); None starts one in this machine.
    sync_every
        Throughput mode: every worker answers so many batches from a snapshot of the prototypes
        before they are merged. The answers are then other ones (``docs/scale.md``). A method that
        answers from a fit, as Scout does, loses nothing by it: its workers always do.
    pool
        A pool that several streams share; it decides workers and address.
    """

    kind: Kind = "local"
    workers: int | None = None
    ray_address: str | None = None
    sync_every: int | None = None
    pool: EncoderPool | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("local", "ray"):
            raise InputError(f"engine must be local or ray, got {self.kind!r}")
        for name in ("workers", "sync_every"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise InputError(f"{name} must be 1 or more, got {value}")
        if self.kind == "local":
            for name in ("workers", "ray_address", "sync_every"):
                if getattr(self, name) is not None:
                    raise InputError(f"{name} goes with `engine=ray`")
        else:
            from ttgcd.engines.cluster.pool import require_ray

            require_ray()

    @contextmanager
    def streams(self, inputs: Inputs, method: Method) -> Iterator[tuple[MakeStream, Any]]:
        """How streams are opened, and what of the engine decides the answers, as JSON."""
        if self.kind == "local":
            yield inputs.stream, {}
            return
        if inputs.source.live:
            raise InputError(
                "this source can be read only once and only here: use `engine=local`, or write it "
                "to files first"
            )
        own = self.make_pool(inputs) if self.pool is None else nullcontext(self.pool)
        with own as pool:
            if self.sync_every is None or hasattr(type(method.behind), "observe_answered"):
                yield (lambda place, index: self._exact(inputs, method, pool, place, index)), {}
            else:
                decides = {"sync_every": self.sync_every, "shards": pool.workers}
                yield (
                    (lambda place, index: self._rounds(inputs, method, pool, place, index)),
                    decides,
                )

    def make_pool(self, inputs: Inputs) -> EncoderPool:
        """Workers with the model of these inputs."""
        from ttgcd.engines.cluster.pool import EncoderPool, model_of

        vlm, settings = inputs.task.vlm, inputs.settings
        device = "cpu" if vlm is None else vlm.device.type
        return EncoderPool(
            model_of(vlm, settings.model, device),
            self.workers,
            address=self.ray_address,
            threads=settings.threads or 1,
            gpus=1 if device == "cuda" else 0,
        )

    def _exact(
        self, inputs: Inputs, method: Method, pool: EncoderPool, place: int, index: int
    ) -> Stream:
        from ttgcd.engines.cluster.stream import PooledStream

        return PooledStream(
            inputs.source, method, pool, inputs.settings.batch_size, _seed(inputs), place, index
        )

    def _rounds(
        self, inputs: Inputs, method: Method, pool: EncoderPool, place: int, index: int
    ) -> Stream:
        from ttgcd.engines.cluster.shards import ShardsOnPool
        from ttgcd.engines.rounds import RoundStream

        assert self.sync_every is not None
        exact = self._exact(inputs, method, pool, place, index)
        observe = ShardsOnPool(exact, method, pool, _seed(inputs))
        return RoundStream(exact, method, observe, pool.workers, self.sync_every)


def _seed(inputs: Inputs) -> int | None:
    return inputs.settings.seed if inputs.settings.shuffle and not inputs.source.live else None


LOCAL = Engine()
