"""What a stream is made of: a source that can be counted and read at random, and its batches."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ttgcd.errors import InputError

if TYPE_CHECKING:
    import torch

Kind = Literal["images", "embeddings"]


@dataclass(frozen=True)
class Batch:
    """Samples that arrive together.

    A *position* counts samples in the source; a *place* counts them in stream order (the two
    differ when the stream is shuffled); the stream *index* counts accepted samples only.
    """

    ids: tuple[str, ...]
    start: int  # stream index of the first sample
    positions: tuple[int, ...]  # positions in the source, listed in stream order
    next_position: int  # the place where reading goes on after this batch
    images: torch.Tensor | None = None  # uint8 (n, 3, S, S): resized, cropped, not normalised
    features: np.ndarray | None = None  # float32 (n, d), unit rows, once they are encoded
    places: tuple[int, ...] = ()  # place of each sample; empty means that none was set aside
    step: int = 0  # of a block of batches: samples that a method sees at once; 0: all of them

    def __len__(self) -> int:
        return len(self.ids)

    def all_places(self) -> tuple[int, ...]:
        """The place of each sample in stream order."""
        return self.places or tuple(range(self.next_position - len(self), self.next_position))

    def split(self, at: int) -> tuple[Batch, Batch]:
        """The first ``at`` samples and the rest, as two batches of the same stream."""
        if not 0 <= at <= len(self):
            raise ValueError(f"cannot split a batch of {len(self)} samples at {at}")
        places = self.all_places()
        if at == len(self):
            middle = self.next_position
        elif at == 0:
            middle = places[0]
        else:
            middle = places[at - 1] + 1
        whole = len(self)
        return self._between(0, at, middle), self._between(at, whole, self.next_position)

    @property
    def steps(self) -> int:
        """How many batches a method sees in this one."""
        return -(-len(self) // self.step) if self.step else 1

    def parts(self) -> list[Batch]:
        """What a method sees, one after the other."""
        if self.steps == 1:
            return [self]
        places, whole = self.all_places(), len(self)
        ends = [*range(self.step, whole, self.step), whole]
        after = [*(places[end - 1] + 1 for end in ends[:-1]), self.next_position]
        return [
            self._between(begin, end, place)
            for begin, end, place in zip([0, *ends], ends, after, strict=False)
        ]

    def _between(self, begin: int, end: int, next_position: int) -> Batch:
        return replace(
            self,
            ids=self.ids[begin:end],
            start=self.start + begin,
            positions=self.positions[begin:end],
            next_position=next_position,
            images=None if self.images is None else self.images[begin:end],
            features=None if self.features is None else self.features[begin:end],
            places=self.places[begin:end],
        )


@dataclass(frozen=True)
class Rejected:
    """A sample that was set aside, and why."""

    id: str
    position: int  # in the source
    reason: str
    place: int = -1  # in stream order


class Rejection(ValueError):
    """Raised by a source or by decoding for one sample that must be set aside; says why."""


class Source(ABC):
    """Samples that can be counted and read in any order, from several threads at once."""

    kind: ClassVar[Kind] = "images"
    #: Whether the order is that of arrival and means something, as on standard input.
    live: bool = False
    #: Whether most of the time of a read is waiting for a network.
    distant: bool = False
    #: What the user gave: a path, or None for samples that live in memory.
    origin: str | None = None
    #: The folder in which the ids are paths of files; None where samples are not single files.
    folder: str | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def id(self, position: int) -> str:
        """The stable id of a sample: valid Unicode, unique, and the same on the next run."""

    def ids(self, positions: Sequence[int]) -> tuple[str, ...]:
        """The ids of several samples."""
        return tuple(map(self.id, positions))

    @abstractmethod
    def read(self, position: int) -> bytes | np.ndarray:
        """Encoded image bytes, a uint8 HWC array, or a float32 vector.

        Raises ``Rejection``, ``OSError`` or ``ValueError`` for a sample that cannot be read.
        """

    def read_each(self, positions: Sequence[int]) -> Iterator[bytes | np.ndarray | Exception]:
        """Several samples in order, or why they cannot be read; remote ones side by side."""
        if self.distant:
            from ttgcd.streams.remote import side_by_side

            return side_by_side(self.read, positions)
        return self._one_by_one(positions)

    def _one_by_one(self, positions: Sequence[int]) -> Iterator[bytes | np.ndarray | Exception]:
        for position in positions:
            try:
                yield self.read(position)
            except InputError:
                raise
            except (OSError, ValueError) as error:
                yield error

    def read_many(self, positions: Sequence[int]) -> np.ndarray | None:
        """Several samples at once as one array, for sources that hold equal-sized arrays."""
        return None

    def prepare_random(self) -> None:  # noqa: B027 - most sources read anywhere at equal cost
        """Told once before a shuffled stream: samples will be asked for in any order."""

    def notes(self) -> tuple[str, ...]:
        """What the user should know about the input, such as files that were left out."""
        return ()

    def signature(self, position: int) -> str:
        """What would change if this sample were replaced by another; cheap, reads no pixels."""
        return self.id(position)

    def signed(self, positions: Sequence[int]) -> bytes:
        """One line a sample, its id and its signature: what a running hash of the input takes."""
        lines = [f"{self.id(position)}\0{self.signature(position)}\n" for position in positions]
        return "".join(lines).encode()

    def fingerprint(self) -> str:
        """Hash over the ids and signatures of all samples, in source order."""
        digest = hashlib.sha256(f"{self.kind} {len(self)}\n".encode())
        for begin in range(0, len(self), 4096):
            digest.update(self.signed(range(begin, min(begin + 4096, len(self)))))
        return digest.hexdigest()

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Release open files. Reading after that is an error."""
