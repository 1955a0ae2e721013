"""A ``State`` on disk: arrays as safetensors, values as JSON, both checked when read.

Nothing here can run code from a file: there is no pickle in either format.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.storage.durable import write_atomic
from ttgcd.storage.state import State

FORMAT = "ttgcd.state"
VERSION = 1
ARRAYS, VALUES = "state.safetensors", "state.json"
_NON_FINITE = "$float"


def save_state(folder: Path, state: State) -> None:
    """Write ``state.safetensors`` and ``state.json`` into a folder; equal states, equal bytes."""
    from safetensors.numpy import save

    folder.mkdir(parents=True, exist_ok=True)
    # One metadata entry only: the library writes several in random order.
    arrays = save(
        {name: np.asarray(array, order="C") for name, array in state.arrays.items()},
        metadata={"format": FORMAT},
    )
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "sha256": hashlib.sha256(arrays).hexdigest(),
        "values": _finite(state.values),
    }
    record["checksum"] = _checksum(record)
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_atomic(folder / ARRAYS, arrays)
    write_atomic(folder / VALUES, text.encode() + b"\n")


def load_state(folder: Path) -> State:
    """Read what ``save_state`` wrote; raise ``InputError`` if it is damaged or too new."""
    values, digest = _read_values(folder)
    path = folder / ARRAYS
    data = _read(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damaged(path, "its checksum does not match state.json")
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from None
    return State(arrays, values)


def load_values(folder: Path) -> dict[str, Any]:
    """Only the JSON half of a state."""
    return _read_values(folder)[0]


def _read_values(folder: Path) -> tuple[dict[str, Any], str]:
    path = folder / VALUES
    try:
        record = json.loads(_read(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is not JSON ({error})") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise _damaged(path, "it is not a saved state")
    version = record.get("version")
    if type(version) is int and version > VERSION:
        raise InputError(
            f"{str(path)!r} has format version {version}, this ttgcd reads up to {VERSION}: "
            "use a newer ttgcd"
        )
    checksum = record.pop("checksum", None)
    try:
        matches = _checksum(record) == checksum
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    if not matches or not isinstance(record.get("values"), dict):
        raise _damaged(path, "its checksum does not match its content")
    try:
        return _restore(record["values"]), str(record.get("sha256"))
    except (ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the state {str(path)!r}: {error.strerror or error}"
        ) from None


def _damaged(path: Path, why: str) -> InputError:
    reason = " ".join(why.split())[:200]
    return InputError(
        f"{str(path)!r} is damaged: {reason}. Restore it from a copy, or start the run again"
    )


def _checksum(record: dict[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: ``{"$float": "inf"}`` stands for one."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NON_FINITE: repr(value)}
    return value


def _restore(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_NON_FINITE}:
            return float(value[_NON_FINITE])
        return {key: _restore(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore(item) for item in value]
    return value
