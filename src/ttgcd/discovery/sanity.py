"""What looks wrong with a run, before it starts and after it ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ttgcd.errors import InputError
from ttgcd.report.order import late_names
from ttgcd.wording import counted, found, listed


def check_count(novel: int, samples: int, known: bool = True) -> list[str]:
    """Refuse more novel categories than samples; say when there are nearly as many.

    >>> check_count(5, 1000)
    []
    """
    if novel >= samples > 0:
        raise InputError(
            f"{found(novel, known)} among "
            f"{counted(samples, 'sample')}: each would hold less than one; give fewer, or let the "
            "number be estimated (`novel=auto`)"
        )
    if novel > samples / 4:
        return [
            f"{found(novel, known)} for {samples:,} samples: most will hold two or three "
            "samples, and none can be told from chance"
        ]
    return []


def sorted_by_folder(ids: Sequence[str], buffered: int) -> list[str]:
    """Say when the samples that the method adapts to come from few of the folders.

    ``ids`` are in stream order. In a folder sorted by class the first ones are the first classes.

    >>> sorted_by_folder([f"{name}/{n}.jpg" for name in "abcdef" for n in range(50)], 100)[0][:65]
    'the first 100 samples, which the method adapts to, are from 2 of '
    """
    if not 0 < buffered < len(ids):
        return []
    folders = [id.rpartition("/")[0] for id in ids]
    among_first, all_of_them = len(set(folders[:buffered])), len(set(folders))
    if all_of_them < 3 or among_first > 0.6 * all_of_them:
        return []
    return [
        f"the first {buffered:,} samples, which the method adapts to, are from {among_first} of "
        f"{all_of_them} folders: if these are classes, leave out `shuffle=False` "
        "to read them in random order"
    ]


def late_classes(categories: np.ndarray, buffered: int, known: Sequence[str]) -> list[str]:
    """Say which known classes' samples all came after the first ``buffered`` ones.

    The encoder is adapted and the new groups are seeded on those alone (Sec. 4.2): a class that is
    not among them is met by prototypes that belong to others.
    """
    names = late_names(categories, buffered, known)
    if not names:
        return []
    which = "1 known class was" if len(names) == 1 else f"{len(names)} known classes were"
    return [
        f"{which} not among the first {buffered:,} samples, which the method adapts to, and came "
        f"only later: {listed(names, 8)}. The input seems to be sorted: leave out `shuffle=False` "
        "to read it in random order"
    ]


def late_classes_of(table: Path, buffered: int, known: Sequence[str]) -> list[str]:
    """The same for the assignments of a finished run, which are in stream order."""
    import pyarrow.parquet as pq

    categories = pq.read_table(table, columns=["category"])["category"].to_numpy()
    return late_classes(categories, buffered, known)
