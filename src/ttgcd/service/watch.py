"""Feed the files that appear in a folder into a stream."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from ttgcd.service.errors import ServiceError
from ttgcd.service.intake import Sent, opened
from ttgcd.service.limits import Limits
from ttgcd.service.live import LiveStream
from ttgcd.streams.formats import EXTENSIONS

_AT_ONCE = 64


class Watch:
    """Looks every second. A file is taken once its size has stayed the same for a look, in the
    order of names; its path within the folder is its id, so that a restart takes nothing twice."""

    def __init__(
        self, folder: Path, stream: LiveStream, limits: Limits, every: float = 1.0
    ) -> None:
        self.folder, self.stream, self.limits, self.every = folder, stream, limits, every
        self.refused: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ttgcd-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            names = self._settled()
            for start in range(0, len(names), _AT_ONCE):
                if self._stop.is_set():
                    return
                while self.stream.waiting > self.limits.queue // 2 and not self._stop.wait(0.1):
                    pass
                self._take(names[start : start + _AT_ONCE])

    def _settled(self) -> list[str]:
        """New files that are not being written any more."""
        before, self._sizes = self._sizes, {}
        if self.stream.paused:
            return []
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if path.suffix.lower() not in EXTENSIONS or name in self.refused:
                continue
            if name not in self.stream.journal.ids:
                try:
                    self._sizes[name] = path.stat().st_size
                except OSError:
                    continue
        return [name for name, size in self._sizes.items() if size and before.get(name) == size]

    def _take(self, names: list[str]) -> None:
        sent = []
        for name in names:
            try:
                sent.append(Sent(name, (self.folder / name).read_bytes()))
            except OSError as error:
                self.refused[name] = error.strerror or "cannot be read"
        ready = opened(sent, self.stream.vlm.preprocess, self.limits)
        self.refused |= {image.id: str(image.problem) for image in ready if image.problem}
        entries = [image.entry for image in ready if image.entry is not None]
        if entries:
            try:
                self.stream.receive(entries, wait=False)[1].result()
            except ServiceError:
                time.sleep(self.every)
