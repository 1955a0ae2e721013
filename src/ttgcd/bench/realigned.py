"""Re-alignments kept on disk: variants that differ only in stage two need not train again."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np

from ttgcd.methods.realign import Realigned
from ttgcd.storage.durable import write_atomic
from ttgcd.vlm.anchors import cache_folder


class RealignedOnDisk(MutableMapping[str, Realigned]):
    """One small file a re-alignment; ``saved`` sums the seconds that those read back had taken."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder() / "realigned"
        self.saved = 0.0

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"

    def __getitem__(self, key: str) -> Realigned:
        try:
            with np.load(io.BytesIO(self._path(key).read_bytes()), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            facts = json.loads(str(arrays.pop("facts")))
            found = Realigned(arrays, facts["losses"], facts["seconds"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise KeyError(key) from None  # absent or damaged: it is made again
        self.saved += found.seconds
        return found

    def __setitem__(self, key: str, value: Realigned) -> None:
        facts = np.array(json.dumps({"losses": value.losses, "seconds": value.seconds}))
        arrays: dict[str, Any] = {"facts": facts, **value.norms}
        # A cache that cannot be written costs time, not the run.
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path(key), lambda file: np.savez(file, **arrays))

    def __delitem__(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in self.folder.glob("*.npz"))

    def __len__(self) -> int:
        return sum(1 for _ in self)
