"""What an edited run hands on to one that goes on from it, besides the log.

Moves and splits speak of images that the next run does not have. Those images come along as
evidence: their ids, the method's own answers and their features, together with an even sample of
the other images, so that every category still looks as it did. ``state/evidence.parquet`` of the
next run holds them, and the runs after that take them along in turn.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttgcd.discovery.edits.records import Edit
from ttgcd.errors import InputError
from ttgcd.prototypes.confidence import Rows
from ttgcd.storage.durable import write_atomic

NAME = "evidence.parquet"
#: Images that are handed on beside those that edits speak of.
MOST_SAMPLES = 4_096
_DTYPE = np.dtype("<f2")


@dataclass(frozen=True)
class Evidence:
    """Images of earlier runs.

    Parameters
    ----------
    ids: as they were called there.
    category: the method's own answers, without edits.
    first, last: edits with first < number <= last were made where the image was, and mean it.
    features: half precision, one row an image.
    """

    ids: tuple[str, ...]
    category: np.ndarray
    first: np.ndarray
    last: np.ndarray
    features: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of_run(
        cls, ids: Sequence[str], category: np.ndarray, features: Rows, edits: tuple[int, int]
    ) -> Evidence:
        """All images of a run on which the edits after ``edits[0]``, up to ``edits[1]``, were
        made; features are read when they are picked."""
        first, last = (np.full(len(ids), number, np.int64) for number in edits)
        return cls(tuple(ids), category.astype(np.int64), first, last, features)  # type: ignore[arg-type]

    def spoken_of(self, edits: Sequence[Edit]) -> np.ndarray:
        """Which images some edit means, whether it is in force or undone."""
        anywhere = {image for edit in edits for image in edit.images}
        some = np.array([row for row, name in enumerate(self.ids) if name in anywhere], np.int64)
        found = np.zeros(len(self), bool)
        for edit in edits:
            found[some[self._means(edit, some)]] = True
        return found

    def meant_by(self, edit: Edit) -> np.ndarray:
        """Rows of the images that an edit means."""
        return np.flatnonzero(self._means(edit, np.arange(len(self))))

    def _means(self, edit: Edit, rows: np.ndarray) -> np.ndarray:
        images = set(edit.images)
        there = (self.first[rows] < edit.number) & (edit.number <= self.last[rows])
        return there & np.array([self.ids[row] in images for row in rows.tolist()], bool)

    def handed_on(self, edits: Sequence[Edit], most: int) -> Evidence:
        """The images that edits mean, and an even sample of at most ``most`` others."""
        meant = self.spoken_of(edits)
        others = np.flatnonzero(~meant)
        if len(others) > most:
            others = others[np.linspace(0, len(others) - 1, most).astype(np.int64)]
        rows = np.sort(np.concatenate([np.flatnonzero(meant), others]))
        return Evidence(
            tuple(self.ids[row] for row in rows.tolist()),
            self.category[rows],
            self.first[rows],
            self.last[rows],
            np.asarray(self.features[rows], _DTYPE),
        )

    def with_more(self, other: Evidence) -> Evidence:
        """The images of both."""
        return Evidence(
            self.ids + other.ids,
            np.concatenate([self.category, other.category]),
            np.concatenate([self.first, other.first]),
            np.concatenate([self.last, other.last]),
            np.concatenate([self.features, other.features]),
        )

    # -- on disk ------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        width = self.features.shape[1] * _DTYPE.itemsize
        looks = [row.tobytes() for row in np.ascontiguousarray(self.features, _DTYPE)]
        table = pa.table(
            {
                "id": pa.array(self.ids, pa.string()),
                "category": pa.array(self.category, pa.int32()),
                "first_edit": pa.array(self.first, pa.int32()),
                "last_edit": pa.array(self.last, pa.int32()),
                "features": pa.array(looks, pa.binary(width)),
            }
        )
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        write_atomic(folder / NAME, buffer.getvalue())

    @classmethod
    def load(cls, folder: Path) -> Evidence | None:
        """What a run's ``state`` folder has of earlier runs; None when there is nothing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = folder / NAME
        try:
            table = pq.read_table(io.BytesIO(path.read_bytes()))
            category, first, last = (
                table.column(name).to_numpy().astype(np.int64)
                for name in ("category", "first_edit", "last_edit")
            )
            looks = np.frombuffer(b"".join(table.column("features").to_pylist()), _DTYPE)
            ids = tuple(table.column("id").to_pylist())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
        except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{str(path)!r} is damaged: {error}") from None
        return cls(ids, category, first, last, looks.reshape(len(ids), -1))


class Together:
    """The features of evidence and of a run's own images as one, own ones behind."""

    def __init__(self, earlier: np.ndarray, own: Rows) -> None:
        self._earlier, self._own = earlier, own

    def __len__(self) -> int:
        return len(self._earlier) + len(self._own)

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        border = len(self._earlier)
        before = self._earlier[start : min(stop, border)]
        own = np.asarray(self._own[max(0, start - border) : max(0, stop - border)])
        if not len(before):
            return own
        return np.concatenate([before, own.astype(before.dtype, copy=False)])
