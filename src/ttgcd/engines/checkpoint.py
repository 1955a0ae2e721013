"""Checkpoints of a run: several states kept together, replaced as a whole."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ttgcd.storage.durable import sync_folder, writing
from ttgcd.storage.state import State
from ttgcd.storage.state_files import load_state, save_state

_NAME = re.compile(r"checkpoint-(\d+)")
_UNFINISHED = "checkpoint.tmp"


class Checkpoints:
    """The newest checkpoint in a folder.

    A checkpoint is a folder that gets its name only when all of it is on disk; the one before is
    removed only after that. Whatever moment a process dies, one whole checkpoint is left.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, states: Mapping[str, State], values: Mapping[str, Any]) -> None:
        """Keep named states and a few values of the run itself."""
        before = self._numbers()
        unfinished = self.folder / _UNFINISHED
        with writing(self.folder):
            shutil.rmtree(unfinished, ignore_errors=True)
            try:
                save_state(unfinished, _together(states, values))
                os.rename(unfinished, self._path(max(before, default=0) + 1))
            except OSError:
                shutil.rmtree(unfinished, ignore_errors=True)  # a full disk needs the room
                raise
            sync_folder(self.folder)
            for number in before:
                shutil.rmtree(self._path(number))

    def latest(self) -> tuple[dict[str, State], dict[str, Any]] | None:
        """The states and values of the newest checkpoint, None if there is none."""
        numbers = self._numbers()
        return _apart(load_state(self._path(max(numbers)))) if numbers else None

    def _numbers(self) -> list[int]:
        found = (_NAME.fullmatch(name) for name in os.listdir(self.folder))
        return sorted(int(match[1]) for match in found if match)

    def exist(self) -> bool:
        """Whether there is something to go on from."""
        return self.folder.is_dir() and bool(self._numbers())

    def _path(self, number: int) -> Path:
        return self.folder / f"checkpoint-{number:06d}"


def _together(states: Mapping[str, State], values: Mapping[str, Any]) -> State:
    arrays = {
        f"{name}:{key}": array
        for name, state in states.items()
        for key, array in state.arrays.items()
    }
    whole = {"states": {name: state.values for name, state in states.items()}, **values}
    return State(arrays, whole)


def _apart(whole: State) -> tuple[dict[str, State], dict[str, Any]]:
    values = dict(whole.values)
    states = {name: State({}, its_values) for name, its_values in values.pop("states").items()}
    for key, array in whole.arrays.items():
        name, _, its_key = key.partition(":")
        states[name].arrays[its_key] = array
    return states, values
