"""Parquet files that hold encoded images, as Hugging Face ``datasets`` writes them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ttgcd.errors import InputError
from ttgcd.streams import remote
from ttgcd.streams.base import Rejection, Source
from ttgcd.streams.decode import one_line
from ttgcd.streams.files import MAX_FILE_BYTES, check_size, open_binary, stamp_of, unique_ids
from ttgcd.streams.spool import Spool

IMAGE_COLUMNS = ("image", "img", "bytes", "image_bytes", "jpg", "jpeg", "png", "webp", "picture")
ID_COLUMNS = ("id", "image_id", "__key__", "key", "file_name", "filename")
_CACHED_GROUPS = 2
_LARGE_GROUP = 256 * 2**20
_ROWS = 64


class ParquetSource(Source):
    """Rows of one or several files, in file order and then in row order.

    The image column is found by name (``IMAGE_COLUMNS``) or as the only one that holds bytes; it
    is binary or a struct with a ``bytes`` field. The id is the first of ``ID_COLUMNS``, else the
    row number. A row that holds only a path is set aside: the file decides nothing about what is
    read from disk.
    """

    def __init__(self, paths: Sequence[str], max_bytes: int = MAX_FILE_BYTES) -> None:
        self._paths = list(paths)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._cache: OrderedDict[int, pa.ChunkedArray] = OrderedDict()
        self._spool: Spool | None = None
        self._stamps = [stamp_of(path) for path in self._paths]
        self._files: list[pq.ParquetFile] = []
        self._columns: list[str] = []
        self._groups: list[tuple[int, int]] = []  # (file, row group) by running number
        ids: list[str] = []
        starts = [0]
        largest = 0
        for number, path in enumerate(self._paths):
            try:
                file = _opened(path)
                self._files.append(file)
                self._columns.append(_image_column(file.schema_arrow, path))
                ids += _ids(file, first=starts[-1])
                for group in range(file.num_row_groups):
                    info = file.metadata.row_group(group)
                    self._groups.append((number, group))
                    starts.append(starts[-1] + info.num_rows)
                    largest = max(largest, info.total_byte_size)
            except InputError:
                raise
            except Exception as error:  # a damaged footer makes pyarrow raise almost anything
                raise InputError(f"cannot read {path!r} as parquet: {one_line(error)}") from None
        if not starts[-1]:
            raise InputError(f"no row in {self._paths[0]!r}")
        if len(ids) != starts[-1]:
            raise InputError(f"{self._paths[0]!r} is damaged: columns of different lengths")
        self._ids = unique_ids(ids)
        self._repeated = len(ids) - len(set(ids))
        self._starts = np.array(starts, np.int64)
        self._spans = np.zeros((0, 2), np.int64)
        if largest > _LARGE_GROUP:
            self.prepare_random()

    def __len__(self) -> int:
        return len(self._ids)

    def id(self, position: int) -> str:
        return self._ids[position]

    def read(self, position: int) -> bytes:
        if self._spool is not None:
            offset, size = (int(value) for value in self._spans[position])
            if size < 0:
                raise Rejection("no image bytes in this row")
            check_size(size, self._max_bytes)
            return self._spool.read(offset, size)
        group = int(np.searchsorted(self._starts, position, side="right")) - 1
        try:
            with self._lock:
                value = _bytes(self._group(group)[position - int(self._starts[group])].as_py())
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError, IndexError) as error:
            raise Rejection(f"damaged row group: {one_line(error)}") from None
        if value is None:
            raise Rejection("no image bytes in this row")
        check_size(len(value), self._max_bytes)
        return value

    def signature(self, position: int) -> str:
        group = int(np.searchsorted(self._starts, position, side="right")) - 1
        size, modified = self._stamps[self._groups[group][0]]
        return f"{size} {modified} {position - int(self._starts[group])}"

    def prepare_random(self) -> None:
        """Copy the images to a temporary file: a row group holds many and opens only as a whole."""
        if self._spool is not None:
            return
        spool = Spool(self._paths[0])
        spans: list[tuple[int, int]] = []
        for file, column in zip(self._files, self._columns):
            try:
                for batch in file.iter_batches(_ROWS, columns=[column]):
                    for value in map(_bytes, batch.column(0).to_pylist()):
                        size = -1 if value is None else len(value)
                        spans.append((spool.append(value or b""), size))
            except InputError:
                spool.close()
                raise
            except (pa.ArrowException, OSError, ValueError) as error:
                spool.close()
                raise InputError(f"parquet file is damaged: {one_line(error)}") from None
        if len(spans) != len(self):
            spool.close()
            raise InputError(f"parquet file is damaged: {len(spans)} of {len(self)} rows found")
        self._spool, self._spans = spool, np.array(spans, np.int64)

    def notes(self) -> tuple[str, ...]:
        if not self._repeated:
            return ()
        return (f"{self._repeated} row ids occur again; they end in #2, #3, ...",)

    def close(self) -> None:
        for file in self._files:
            file.close()
        if self._spool is not None:
            self._spool.close()

    def __getstate__(self) -> dict[str, Any]:
        """For another process: the index, without what is open here."""
        closed = {"_lock": None, "_files": None, "_cache": None, "_spool": None}
        return {**vars(self), **closed, "_spooled": self._spool is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        spooled = state.pop("_spooled")
        vars(self).update(state, _lock=threading.Lock(), _cache=OrderedDict())
        self._files = [_opened(path) for path in self._paths]
        if spooled:
            self.prepare_random()

    def _group(self, group: int) -> pa.ChunkedArray:
        if group in self._cache:
            self._cache.move_to_end(group)
            return self._cache[group]
        if len(self._cache) == _CACHED_GROUPS:
            self._cache.popitem(last=False)
        number, local = self._groups[group]
        table = self._files[number].read_row_group(local, columns=[self._columns[number]])
        self._cache[group] = table.column(0)
        return self._cache[group]


def _opened(path: str) -> pq.ParquetFile:
    return pq.ParquetFile(open_binary(path) if remote.is_address(path) else path, memory_map=False)


def _image_column(schema: pa.Schema, path: str) -> str:
    holding = [field.name for field in schema if _holds_bytes(field.type)]
    for name in IMAGE_COLUMNS:
        if name in holding:
            return name
    if len(holding) == 1:
        return holding[0]
    what = f"several columns hold bytes ({', '.join(holding)})" if holding else "none holds bytes"
    raise InputError(
        f"no image column in {path!r}: {what}; name the column of encoded images 'image' "
        f"(columns: {', '.join(schema.names)})"
    )


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(field.name == "bytes" and _holds_bytes(field.type) for field in kind)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _bytes(value: Any) -> bytes | None:
    return value.get("bytes") if isinstance(value, dict) else value


def _ids(file: pq.ParquetFile, first: int) -> list[str]:
    rows = file.metadata.num_rows
    for name in ID_COLUMNS:
        index = file.schema_arrow.get_field_index(name)
        if index < 0:
            continue
        kind = file.schema_arrow.field(index).type
        if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            values = file.read(columns=[name]).column(0).to_pylist()
            return [str(first + row if v is None else v) for row, v in enumerate(values)]
    return [str(first + row) for row in range(rows)]
