"""All streams of a service on one model."""

from __future__ import annotations

import json
import re
import shutil
import threading
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ttgcd.discovery.settings import Settings
from ttgcd.engines.lock import only_process
from ttgcd.errors import InputError
from ttgcd.methods.registry import METHODS
from ttgcd.service.batcher import Batcher
from ttgcd.service.errors import Conflict, Invalid, NotFound, NotReady, TooMany
from ttgcd.service.live import LiveStream, settings_file
from ttgcd.storage.durable import sync_folder, write_atomic, writing
from ttgcd.vlm import load_vlm
from ttgcd.vlm.base import VLM

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SETTINGS, _DELETED = "stream.json", ".deleted-"


class House:
    """The streams under a state folder; the folder is held by one process at a time."""

    def __init__(
        self,
        state: Path,
        model: str,
        device: str = "auto",
        most_streams: int = 16,
        on_birth: Callable[[str, int], None] | None = None,
        predicted: Callable[[int, float], None] | None = None,
    ) -> None:
        self.state, self.model, self.device = state, model, device
        self.most_streams, self._on_birth = most_streams, on_birth
        self.ready = False
        self._streams: dict[str, LiveStream] = {}
        self._lock = threading.RLock()
        self._held = ExitStack()
        with writing(state, "then start again"):
            state.mkdir(parents=True, exist_ok=True)
            self._held.enter_context(only_process(state / "lock", state))
        self.batcher = Batcher(predicted)
        self._vlm: VLM | None = None

    # -- its life -----------------------------------------------------------------------------

    def open(self) -> None:
        """Load the model and every stream; what cannot be opened is an ``InputError``."""
        self._vlm = load_vlm(self.model, self.device)
        for folder in sorted(self.state.iterdir()):
            if folder.name.startswith(_DELETED):
                shutil.rmtree(folder, ignore_errors=True)
            elif NAME.fullmatch(folder.name) and (folder / _SETTINGS).exists():
                record = json.loads((folder / _SETTINGS).read_bytes())
                if record["model"] != self.model:
                    raise InputError(
                        f"stream {folder.name!r} was made with the model {record['model']!r}: "
                        "serve it with `model=...` that one, or choose another `state=...`"
                    )
                self._streams[folder.name] = self._live(folder, Settings(**record))
        self.ready = True

    def close(self) -> None:
        self.ready = False
        for stream in self._streams.values():
            stream.close()
        self.batcher.stop()
        self._held.close()

    @property
    def vlm(self) -> VLM:
        if self._vlm is None:
            raise NotReady("the model is being loaded", retry_after=2)
        return self._vlm

    def _live(self, folder: Path, settings: Settings) -> LiveStream:
        return LiveStream(folder, folder.name, settings, self.vlm, self.batcher, self._on_birth)

    # -- streams ------------------------------------------------------------------------------

    def streams(self) -> list[LiveStream]:
        with self._lock:
            return [self._streams[name] for name in sorted(self._streams)]

    def stream(self, name: str) -> LiveStream:
        if not self.ready:
            raise NotReady("the service is starting", retry_after=2)
        with self._lock:
            found = self._streams.get(name)
        if found is None:
            raise NotFound(f"no stream {name[:80]!r}: create it first")
        return found

    def create(self, name: str, settings: dict[str, Any]) -> LiveStream:
        """A new stream; ``settings`` are fields of ``Settings``, checked here."""
        if not NAME.fullmatch(name):
            raise Invalid(
                "a stream's name holds lower-case letters, digits, '-' and '_', at most 64"
            )
        if not self.ready:
            raise NotReady("the service is starting", retry_after=2)
        if settings.get("method") not in (None, *METHODS):
            raise Invalid(f"unknown method: choose one of {', '.join(METHODS)}")
        try:
            checked = Settings(model=self.model, **settings)
        except (InputError, TypeError) as error:
            raise Invalid(str(error)) from None
        with self._lock:
            if name in self._streams:
                raise Conflict(f"there is a stream {name!r} already")
            if len(self._streams) >= self.most_streams:
                raise TooMany(f"there are {len(self._streams)} streams already: delete one")
            folder = self.state / name
            folder.mkdir()
            write_atomic(folder / _SETTINGS, settings_file(checked))
            sync_folder(self.state)
            try:
                self._streams[name] = self._live(folder, checked)
            except InputError as error:
                shutil.rmtree(folder)
                raise Invalid(str(error)) from None
            return self._streams[name]

    def delete(self, name: str) -> None:
        """Forget a stream and all its images."""
        stream = self.stream(name)
        with self._lock:
            del self._streams[name]
        stream.close()
        doomed = self.state / f"{_DELETED}{uuid.uuid4().hex}"
        stream.folder.rename(doomed)
        sync_folder(self.state)
        shutil.rmtree(doomed, ignore_errors=True)
