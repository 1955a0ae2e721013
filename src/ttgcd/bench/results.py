"""Result rows on disk: one JSON line per stream, method variant and seed."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ttgcd.errors import InputError

FORMAT = 1
Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One stream to be run: everything that decides its figures."""

    experiment: str
    label: str
    benchmark: str
    stream: str
    method: str
    model: str
    seed: int
    novel: str = "given"
    limit: int | None = None
    batch_size: int = 128
    config: dict[str, Any] = field(default_factory=dict)  # the method's whole configuration
    options: dict[str, Any] = field(default_factory=dict)  # of the benchmark
    clicks: bool = False  # whether a simulated user corrects the answers

    @property
    def run_id(self) -> str:
        """Equal for jobs that would measure the same thing, in whichever experiment."""
        what = {k: v for k, v in asdict(self).items() if k not in ("experiment", "label")}
        if not self.clicks:
            del what["clicks"]  # rows that were measured before there were clicks keep their id
        text = json.dumps(what, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def row_key(row: Row) -> tuple[str, str]:
    """What must be unique in a results file."""
    return row["label"], row["run_id"]


@dataclass
class Contents:
    """What a results file holds. ``notes`` say what was left out while reading."""

    rows: list[Row]
    notes: list[str]
    good_bytes: int


def read_results(path: Path) -> Contents:
    """Read a results file; a cut last line is dropped, anything else that is broken is an error."""
    contents = Contents([], [], 0)
    if not path.exists():
        return contents
    raw = path.read_bytes()
    seen: set[tuple[str, str]] = set()
    position = 0
    lines = raw.split(b"\n")
    for number, line in enumerate(lines, start=1):
        last = number == len(lines)
        after = position + len(line) + (0 if last else 1)
        if line.strip():
            row = _parse(line)
            if row is None:
                # Only a write that was cut short leaves a broken end.
                if any(rest.strip() for rest in lines[number:]):
                    raise InputError(
                        f"{path}, line {number}: not a result row; remove this line to go on"
                    )
                contents.notes.append(f"{path.name}: dropped a last line that was cut short")
                return contents
            if row_key(row) in seen:
                contents.notes.append(f"{path.name}, line {number}: ignored, occurs before")
            else:
                seen.add(row_key(row))
                contents.rows.append(row)
        position = contents.good_bytes = after
    return contents


def accuracy_rows(folder: Path) -> list[Row]:
    """The rows of the experiments that run all methods over all streams of a benchmark."""
    names = ("main", "domainnet", "iconshift", "fashion")
    return [row for name in names for row in read_results(folder / f"{name}.jsonl").rows]


def _parse(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or not {"label", "run_id", "metrics"} <= set(row):
        return None
    if row.get("format") != FORMAT:
        raise InputError(
            f"a result row has format {row.get('format')!r}, this version reads {FORMAT}; "
            "keep old results in a folder of their own"
        )
    return row


class ResultsFile:
    """A results file open for appending, by one process at a time."""

    def __init__(self, path: Path, contents: Contents, handle: int) -> None:
        self.path = path
        self.rows = contents.rows
        self.notes = contents.notes
        self._handle = handle
        self._keys = {row_key(row) for row in contents.rows}

    def __contains__(self, job: Job) -> bool:
        return (job.label, job.run_id) in self._keys

    def append(self, row: Row) -> bool:
        """Write a row and make sure that it is on disk; False when it is there already."""
        if row_key(row) in self._keys:
            return False
        line = json.dumps({"format": FORMAT, **finite(row)}, ensure_ascii=False) + "\n"
        os.write(self._handle, line.encode())
        os.fsync(self._handle)
        self._keys.add(row_key(row))
        self.rows.append(row)
        return True


@contextmanager
def open_results(path: Path) -> Iterator[ResultsFile]:
    """Lock, repair and open a results file. A second process gets a clear error."""
    from ttgcd.engines.lock import only_process

    path.parent.mkdir(parents=True, exist_ok=True)
    with only_process(path.with_name(f".{path.name}.lock"), path):
        contents = read_results(path)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.ftruncate(handle, contents.good_bytes)
            if contents.good_bytes and os.pread(handle, 1, contents.good_bytes - 1) != b"\n":
                os.write(handle, b"\n")
            yield ResultsFile(path, contents, handle)
        finally:
            os.close(handle)


def finite(value: Any) -> Any:
    """The value with NaN and infinity as null: JSON has no words for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    return value
