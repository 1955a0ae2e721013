"""Which rows an edit means: images of the run itself, or of the runs that it went on from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ttgcd.discovery.edits.evidence import Evidence
from ttgcd.discovery.edits.records import Edit
from ttgcd.errors import InputError
from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.confidence import Rows

if TYPE_CHECKING:
    import pyarrow

#: Cosine of one and the same image, encoded twice and kept in half precision.
SAME_IMAGE = 0.999


class Images:
    """The images of earlier runs, if there are any, and behind them those of a run's table.

    Parameters
    ----------
    ids, features: of the table's rows.
    carried: how many edits were made on earlier runs.
    earlier: the images of those.
    """

    def __init__(
        self,
        ids: pyarrow.ChunkedArray,
        features: Rows | None,
        carried: int,
        earlier: Evidence | None,
    ) -> None:
        self.ids, self.features, self.carried, self.earlier = ids, features, carried, earlier
        self.front = 0 if earlier is None else len(earlier)

    def rows(self, edit: Edit) -> np.ndarray:
        """Rows of an edit's images; an InputError for one that the run has not seen."""
        if edit.number <= self.carried:
            if self.earlier is None:
                raise InputError(
                    f"image {edit.images[0]!r} is of an earlier run that kept no features"
                )
            return self._earlier_rows(edit, self.earlier)
        rows = self.own(edit.images)
        missing = [image for image, row in zip(edit.images, rows) if row is None]
        if missing:
            raise InputError(f"no image {missing[0]!r} in this run: ids are those of the table")
        return self.front + np.unique(np.array(rows, np.int64))

    def _earlier_rows(self, edit: Edit, earlier: Evidence) -> np.ndarray:
        """The images of an earlier run that an edit means, and the same images in this one: an id
        may mean another image here, so they must look the same, too."""
        meant = earlier.meant_by(edit)
        missing = set(edit.images) - {earlier.ids[row] for row in meant.tolist()}
        if missing:
            raise InputError(f"no image {min(missing)!r} in the runs before this one")
        wanted = [earlier.ids[row] for row in meant.tolist()]
        rows = self.own(wanted)
        pairs = [(at, row) for at, row in zip(meant.tolist(), rows) if row is not None]
        same: list[int] = []
        if pairs:
            assert self.features is not None
            own = np.array([row for _, row in pairs], np.int64)
            looks = normalise(np.asarray(self.features[own], np.float32))
            before = normalise(earlier.features[[at for at, _ in pairs]].astype(np.float32))
            same = own[np.einsum("nd,nd->n", looks, before) > SAME_IMAGE].tolist()
        return np.unique(np.concatenate([meant, self.front + np.array(same, np.int64)]))

    def own(self, images: Sequence[str]) -> list[int | None]:
        """Where images stand in the table, None for one that does not."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = pc.index_in(pa.array(images, self.ids.type), value_set=self.ids.combine_chunks())
        return rows.to_pylist()
