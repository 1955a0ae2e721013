"""Suggested names for the novel categories of a stream, found in the background."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ttgcd.prototypes.naming import GroupNames, name_groups
from ttgcd.vlm.anchors import text_anchors

if TYPE_CHECKING:
    from ttgcd.service.live import LiveStream

#: Images that names are found with, spread evenly over the stream.
MOST_SAMPLES = 4096


class Names:
    """The latest suggestions; found again when the learned images have grown by a tenth."""

    def __init__(self, stream: LiveStream) -> None:
        self.version = 0
        self._stream = stream
        self._found: dict[int, GroupNames] = {}
        self._at = 0
        self._busy = False

    def latest(self) -> dict[int, GroupNames]:
        learned = self._stream.learner.next
        if learned > 1.1 * self._at and not self._busy:
            self._busy = True
            threading.Thread(target=self._find, args=(learned,), daemon=True).start()
        return self._found

    def _find(self, learned: int) -> None:
        stream, settings = self._stream, self._stream.settings
        try:
            words = settings.words()
            category = stream.rows.column("category")[:learned]
            novel = [int(c) for c in np.unique(category) if c >= stream.n_known]
            if words and novel:
                embeddings = text_anchors(stream.vlm, words, stream.task.templates)
                some = np.linspace(0, learned - 1, min(learned, MOST_SAMPLES)).astype(np.int64)
                features = stream.learner.features.at(some)
                self._found = name_groups(
                    features,
                    category[some],
                    novel,
                    words,
                    embeddings,
                    exclude=stream.task.known,
                    ranked=settings.vocabulary is None,
                )
                self.version += 1
                stream.events.say("named", categories=len(self._found))
            self._at = learned
        finally:
            self._busy = False
