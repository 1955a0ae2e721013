"""The folder a run writes to: whose it is, whether it is finished, what may be done with it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from ttgcd.engines.checkpoint import Checkpoints
from ttgcd.engines.lock import only_process
from ttgcd.errors import InputError
from ttgcd.storage.durable import sync_folder, write_atomic, writing
from ttgcd.storage.state_files import VALUES, load_values

Standing = Literal["empty", "begun", "unfinished", "finished", "foreign"]

#: Files and folders that a run leaves; only these are ever removed.
LEAVES = (
    "assignments.parquet",
    "categories.json",
    "rejected.csv",
    "report.html",
    "report_files",
    "review.csv",
    "run.json",
    "state",
)
#: What a user's own work leaves beside a run; it outlives the run. Edits of a run that another
#: one replaced are kept as edits-1.jsonl and so on.
KEPT = ("edits.jsonl",)
#: The part of the settings that describes the input: a run may go on when only this has changed,
#: provided that the samples already read are the same.
INPUT = "input"
_PROGRESS, _SETTINGS, _LOCK = ".progress", "settings.json", "lock"
_SHOWN = 6


class OutputFolder:
    """What is in an output folder.

    A run is begun when ``.progress/settings.json`` exists and unfinished when it also has a
    checkpoint; it is finished when there are no such settings but ``state/state.json``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.progress = path / _PROGRESS
        self.state = path / "state"

    def standing(self) -> Standing:
        if (self.progress / _SETTINGS).exists():
            return "unfinished" if Checkpoints(self.progress).exist() else "begun"
        if (self.state / VALUES).exists():
            return "finished"
        if not self.path.exists():
            return "empty"
        if not self.path.is_dir():
            raise InputError(f"{str(self.path)!r} is a file: choose a folder for `out=...`")
        try:
            return "foreign" if set(os.listdir(self.path)) - {_PROGRESS} else "empty"
        except OSError as error:
            raise InputError(f"cannot look into {str(self.path)!r}: {error.strerror}") from None

    def others(self) -> str:
        """What lies beside a run and is not its own, a few of it; hidden files do not count."""
        if not self.path.is_dir():
            return ""
        ours = (*LEAVES, *KEPT)
        names = [
            name
            for name in sorted(os.listdir(self.path))
            if name not in ours and name[0] != "." and not re.fullmatch(r"edits-\d+\.jsonl", name)
        ]
        return ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")

    def settings(self) -> dict[str, Any]:
        """The settings of the run in the folder."""
        if self.standing() == "finished":
            return load_values(self.state).get("settings", {})
        path = self.progress / _SETTINGS
        try:
            settings = json.loads(path.read_bytes())
            if isinstance(settings, dict):
                return settings
        except (OSError, ValueError):
            pass
        raise InputError(f"{str(path)!r} is damaged. Start again with `overwrite=True`")

    def check(self, settings: dict[str, Any], resume: bool, overwrite: bool) -> Standing:
        """Refuse what must not be touched; changes nothing."""
        standing = self.standing()
        name = str(self.path)
        if standing == "foreign":
            raise InputError(
                f"{name!r} is not empty and is not the output of a run: choose another `out=...`"
            )
        if overwrite and (others := self.others()):
            raise InputError(
                f"{name!r} holds a run and also {others}, which no run has written: move that "
                "away, or choose another `out=...`"
            )
        if standing in ("empty", "begun") or overwrite:
            return standing
        there, now = self.settings(), dict(settings)
        if standing == "unfinished":  # judged by the samples that were read, when it goes on
            there.pop(INPUT, None)
            now.pop(INPUT, None)
        changed = difference(there, now)
        if changed:
            raise InputError(
                f"{name!r} holds a run with other settings ({changed}): "
                "use the same ones, `overwrite=True`, or another `out=...`"
            )
        if not resume:
            advice = "go on with `resume=True`" if standing == "unfinished" else "it is complete"
            raise InputError(
                f"{name!r} holds {'an' if standing == 'unfinished' else 'a'} {standing} run: "
                f"{advice}, start again with `overwrite=True`, or choose another `out=...`"
            )
        return standing

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other process out."""
        with writing(self.path, "then start again"):
            self.progress.mkdir(parents=True, exist_ok=True)
            lock = only_process(self.progress / _LOCK, self.path)
            lock.__enter__()
        try:
            yield
        finally:
            lock.__exit__(None, None, None)
            with suppress(OSError):  # not empty: the run can go on from what is in it
                self.progress.rmdir()

    def begin(self, settings: dict[str, Any]) -> None:
        """Start a run: its settings first, so that the folder is ours from then on."""
        with writing(self.path, "then start again"):
            discarded = self.progress / "discarded"
            _remove(discarded)
            for name in sorted(os.listdir(self.progress)):  # checkpoints before parts
                if name not in (_LOCK, _SETTINGS):
                    (self.progress / name).rename(discarded)  # gone as a whole or not at all
                    _remove(discarded)
            self.keep_settings(settings)
            for name in LEAVES:
                _remove(self.path / name)
            sync_folder(self.path)

    def keep_settings(self, settings: dict[str, Any]) -> None:
        with writing(self.path):
            text = json.dumps(settings, indent=1, sort_keys=True)
            write_atomic(self.progress / _SETTINGS, text.encode() + b"\n")

    def complete(self) -> None:
        """The run is finished: from the first line on, nothing is left to resume."""
        with writing(self.path):
            (self.progress / _SETTINGS).unlink()
            sync_folder(self.progress)
            self.tidy()

    def tidy(self) -> None:
        """Remove what a finished run has left of its progress."""
        with writing(self.path):
            for name in os.listdir(self.progress):
                if name != _LOCK:
                    _remove(self.progress / name)


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they come back from a JSON file."""
    return json.loads(json.dumps(settings))


def difference(there: Any, now: Any) -> str:
    """What differs between two settings, a few of it, in words."""
    lines = [
        # A hash says nothing to a reader but that it is another one.
        "other input" if key == INPUT else f"{key}: {_short(was)} there, {_short(is_now)} now"
        for key, was, is_now in _differences(there, now, "")
    ]
    more = f"; {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more


_ABSENT = object()


def _differences(there: Any, now: Any, key: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(there, dict) and isinstance(now, dict):
        for name in sorted(there.keys() | now.keys()):
            inner = f"{key}.{name}" if key else name
            yield from _differences(there.get(name, _ABSENT), now.get(name, _ABSENT), inner)
    elif there is _ABSENT or now is _ABSENT or there != now:
        yield key, there, now


def _short(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
