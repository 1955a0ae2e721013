"""A folder of images, with its sub-folders."""

from __future__ import annotations

import os

from ttgcd.errors import InputError
from ttgcd.streams.decode import EXTENSIONS
from ttgcd.streams.files import MAX_FILE_BYTES, Files, readable_text


class FolderSource(Files):
    """Every image file below a folder, in the order of the relative paths.

    An id is the path relative to the folder with ``/`` between its parts; the order is by Unicode
    code point of that path, the same on every system. Files count as images by their extension;
    hidden files and folders are left out. Links to folders are not followed, and a link to a file
    outside the folder is set aside when it is read.
    """

    def __init__(self, folder: str, max_bytes: int = MAX_FILE_BYTES) -> None:
        self._others = self._links = 0
        self._closed_folders: list[str] = []
        found = sorted(self._walk(folder))
        if not found:
            raise InputError(
                f"no image in {folder!r}: looked for {', '.join(sorted(EXTENSIONS))} files "
                f"in it and its sub-folders ({self._others} other files were found)"
            )
        paths = [os.path.join(folder, *relative.split("/")) for relative in found]
        ids = [readable_text(relative) for relative in found]
        super().__init__(paths, ids, inside=folder, max_bytes=max_bytes)

    def notes(self) -> tuple[str, ...]:
        notes = []
        if self._others:
            notes.append(f"{self._others} files that are hidden or no images were left out")
        if self._links:
            notes.append(f"{self._links} links to folders were not followed")
        notes += [f"cannot look into folder {name!r}" for name in self._closed_folders]
        return tuple(notes)

    def _walk(self, folder: str) -> list[str]:
        def closed(error: OSError) -> None:
            self._closed_folders.append(readable_text(str(error.filename)))

        found = []
        for here, folders, names in os.walk(folder, followlinks=False, onerror=closed):
            links = [name for name in folders if os.path.islink(os.path.join(here, name))]
            self._links += len(links)
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                if name.startswith(".") or os.path.splitext(name)[1].lower() not in EXTENSIONS:
                    self._others += 1
                else:
                    relative = os.path.relpath(os.path.join(here, name), folder)
                    found.append(relative.replace(os.sep, "/"))
        return found
