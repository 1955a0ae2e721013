"""A folder of images, with its sub-folders: here or at an address."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from urllib.parse import unquote

from ttgcd.errors import InputError
from ttgcd.streams import remote
from ttgcd.streams.base import Rejection
from ttgcd.streams.files import MAX_FILE_BYTES, Files, readable_text
from ttgcd.streams.formats import EXTENSIONS, UNREAD, extension_of, unread_note
from ttgcd.wording import by_extension, counted, listed

#: What tells the folder of a finished run, and that of one that is not finished.
RUN_FILES = frozenset({"run.json", "assignments.parquet", "categories.json"})
RUN_PROGRESS = ".progress"


class FolderSource(Files):
    """Every image file below a folder, in the order of the relative paths.

    An id is the path relative to the folder with ``/`` between its parts; the order is by Unicode
    code point of that path, the same on every system. Files count as images by their extension;
    those of a format that cannot be read here are samples too, to be set aside with the reason.
    Hidden files and folders are left out. Links to folders are not followed, and a link to a file
    outside the folder is set aside when it is read. What a run of ours has left below the folder is
    no input of the next one.
    """

    def __init__(self, folder: str, max_bytes: int = MAX_FILE_BYTES) -> None:
        self._hidden = self._links = 0
        self._runs: list[str] = []  # folders that runs have left
        self._others: list[str] = []  # extensions of files that are no images
        self._closed_folders: list[str] = []
        found = sorted(self._walk(folder))
        if all(extension_of(relative) in UNREAD for relative in found):
            self._refuse(folder, found)
        self._unread = [e for e in map(extension_of, found) if e in UNREAD]
        self._take(folder, found, max_bytes)

    def _take(self, folder: str, found: list[str], max_bytes: int) -> None:
        paths = [os.path.join(folder, *relative.split("/")) for relative in found]
        ids = [readable_text(relative) for relative in found]
        Files.__init__(self, paths, ids, inside=folder, max_bytes=max_bytes)
        self.folder = os.path.abspath(folder)

    def read(self, position: int) -> bytes:
        if self._unread and (why := UNREAD.get(extension_of(self._paths[position]))):
            raise Rejection(why)
        return super().read(position)

    def notes(self) -> tuple[str, ...]:
        notes = [unread_note(self._unread)] if self._unread else []
        if self._others:
            were = "was" if len(self._others) == 1 else "were"
            no_images = "that is no image" if were == "was" else "that are no images"
            notes.append(
                f"{counted(len(self._others), 'file')} {no_images} {were} left out "
                f"({by_extension(self._others)})"
            )
        if self._hidden:
            were = "was" if self._hidden == 1 else "were"
            notes.append(f"{counted(self._hidden, 'hidden file')} {were} left out")
        if self._links:
            were = "was" if self._links == 1 else "were"
            notes.append(f"{counted(self._links, 'link')} to folders {were} not followed")
        if self._runs:
            were = "was" if len(self._runs) == 1 else "were"
            runs = counted(len(self._runs), "folder of a run", "folders of runs")
            notes.append(f"{runs} {were} left out: {listed(self._runs, 3)}")
        notes += [f"cannot look into folder {name!r}" for name in self._closed_folders]
        return tuple(notes)

    def _walk(self, folder: str) -> list[str]:
        def closed(error: OSError) -> None:
            self._closed_folders.append(readable_text(str(error.filename)))

        found = []
        for here, folders, names in os.walk(folder, followlinks=False, onerror=closed):
            links = [name for name in folders if os.path.islink(os.path.join(here, name))]
            self._links += len(links)
            if here != folder and _is_a_run(folders, names):
                self._runs.append(readable_text(os.path.relpath(here, folder).replace(os.sep, "/")))
                folders.clear()
                continue
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in filter(self._is_image, names):
                relative = os.path.relpath(os.path.join(here, name), folder)
                found.append(relative.replace(os.sep, "/"))
        return found

    def _is_image(self, name: str) -> bool:
        """By its name; the others are counted."""
        extension = extension_of(name)
        if name.startswith("."):
            self._hidden += 1
            return False
        if extension not in EXTENSIONS and extension not in UNREAD:
            self._others.append(readable_text(extension))
            return False
        return True

    def _refuse(self, folder: str, unread: list[str]) -> None:
        """Nothing to read: say what was looked for and what was there instead."""
        if unread:
            why = unread_note([extension_of(relative) for relative in unread])
            raise InputError(f"no readable image in {folder!r}: {why}")
        there = f": {by_extension(self._others)}" if self._others else ""
        raise InputError(
            f"no image in {folder!r}: looked for {', '.join(sorted(EXTENSIONS))} files in it and "
            f"its sub-folders ({counted(len(self._others), 'other file')}{there})"
        )


def _is_a_run(folders: Sequence[str], names: Collection[str]) -> bool:
    """Whether a folder is the output of a run, finished or not, by what lies in it."""
    return set(names) >= RUN_FILES or RUN_PROGRESS in folders


class RemoteFolder(FolderSource):
    """Every image below an address; the same ids and the same order as for a folder.

    What the listing says of a file (its size, and its tag or time) is its signature.
    """

    def _walk(self, folder: str) -> list[str]:
        self._listed = {file.relative: file.stamp for file in remote.listing(folder)}
        found = []
        holds: dict[str, set[str]] = {}
        for relative in self._listed:
            here, _, name = relative.rpartition("/")
            holds.setdefault(here, set()).add(name)
        self._runs = sorted(here for here, names in holds.items() if here and names >= RUN_FILES)
        for relative in self._listed:
            if any(relative.startswith(f"{run}/") for run in self._runs):
                continue
            *folders, name = relative.split("/")
            if not any(part.startswith(".") for part in folders) and self._is_image(name):
                found.append(relative)
        return found

    def _take(self, folder: str, found: list[str], max_bytes: int) -> None:
        escaped = folder.lower().startswith("http")  # names in a page of links are
        ids = [readable_text(unquote(relative) if escaped else relative) for relative in found]
        paths = [remote.join(folder, relative) for relative in found]
        Files.__init__(self, paths, ids, max_bytes=max_bytes)
        self._signatures = [self._listed[relative] for relative in found]
        del self._listed

    def signature(self, position: int) -> str:
        return self._signatures[position]
