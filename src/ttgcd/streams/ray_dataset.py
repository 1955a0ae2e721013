"""Rows of a ``ray.data.Dataset``: encoded bytes or pixels, wherever Ray keeps them.

The data set is executed once, in its own order; its blocks stay in Ray's object store (which
spills to disk) and are fetched by whoever reads a row of them, here or in a worker. Nothing but
names comes to this process.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.streams.arrays import open_array
from ttgcd.streams.base import Source
from ttgcd.streams.objects import PICTURES, name_of, pixels

#: Columns of feature vectors, looked for where there is no picture.
VECTORS = ("embedding", "embeddings", "features", "feature", "vector")
_CACHED_BLOCKS = 4


def is_ray_dataset(given: Any) -> bool:
    """Whether this is one, without importing Ray for those who have none."""
    return type(given).__module__.startswith("ray.data.") and hasattr(given, "iter_rows")


def open_ray_dataset(dataset: Any) -> Source:
    """Images, or embeddings if there is a column of vectors and none of pictures."""
    import ray

    options = dataset.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        blocks = [block for block in dataset.to_arrow_refs()]
    finally:
        options.preserve_order = before
    looked = ray.remote(num_cpus=0)(_look)
    names: list[list[str | None]] = []
    columns: set[str] = set()
    for found, there in ray.get([looked.remote(block) for block in blocks]):
        names.append(found)
        columns |= there
    if not any(names):
        raise InputError("the Ray data set is empty: there is no image in it")
    vectors = [name for name in VECTORS if name in columns]
    if vectors and not columns & {*PICTURES, "bytes"}:
        taken = ray.remote(num_cpus=0)(_vectors)
        parts = ray.get([taken.remote(b, vectors[0]) for b, n in zip(blocks, names) if n])
        return open_array(np.concatenate(parts))
    return RayDataset([block for block, n in zip(blocks, names) if n], [n for n in names if n])


class RayDataset(Source):
    """Images of a data set of Ray, by block and row.

    A row has a column such as "image" (pixels, as ``read_images`` gives) or "bytes" (an encoded
    image, as ``read_binary_files`` gives). Its id is its "id" or "path", or else its number.
    """

    def __init__(self, blocks: list[Any], names: list[list[str | None]]) -> None:
        self._blocks = blocks
        self._starts = np.array([0, *accumulate(map(len, names))], np.int64)
        ids = [name for block in names for name in block]
        whole = None not in ids and len(set(ids)) == len(ids)  # names that are not unique name none
        self._ids = [str(name if whole else number) for number, name in enumerate(ids)]
        self.origin = None
        self._open()

    def _open(self) -> None:
        self._lock = threading.Lock()
        self._cache: OrderedDict[int, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ids)

    def id(self, position: int) -> str:
        return self._ids[position]

    def read(self, position: int) -> bytes | np.ndarray:
        number = int(np.searchsorted(self._starts, position, side="right")) - 1
        return pixels(_row(self._block(number), position - int(self._starts[number])))

    def fingerprint(self) -> str:
        """Over the names and a few rows: hashing them all would read the data set twice."""
        digest = hashlib.sha256("\0".join(self._ids).encode())
        for position in sorted({0, len(self) // 2, len(self) - 1}):
            try:
                data = self.read(position)
            except (ValueError, OSError):
                continue
            digest.update(data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes())
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """For another process: where the blocks are."""
        return {**vars(self), "_lock": None, "_cache": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def _block(self, number: int) -> Any:
        import ray

        with self._lock:
            if number not in self._cache:
                if len(self._cache) == _CACHED_BLOCKS:
                    self._cache.popitem(last=False)
                self._cache[number] = ray.get(self._blocks[number])
            self._cache.move_to_end(number)
            return self._cache[number]


def _row(block: Any, at: int) -> Mapping[str, Any]:
    from ray.data.block import BlockAccessor

    piece = BlockAccessor.for_block(block).slice(at, at + 1, copy=False)
    return dict(next(iter(BlockAccessor.for_block(piece).iter_rows(public_row_format=True))))


def _look(block: Any) -> tuple[list[str | None], set[str]]:
    """Names of the rows, and of the columns. Runs where the block is."""
    columns = set(block.column_names)
    small = block.drop_columns([c for c in columns if c in {*PICTURES, *VECTORS, "bytes"}])
    if not small.num_columns:
        return [None] * block.num_rows, columns
    return [name_of(row) for row in small.to_pylist()], columns


def _vectors(block: Any, column: str) -> np.ndarray:
    from ray.data.block import BlockAccessor

    return np.stack(list(BlockAccessor.for_block(block).to_numpy(column)))
