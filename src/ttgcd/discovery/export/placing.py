"""Where an image goes in a tree of categories: names that every file system takes, no clashes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
_LONGEST = 120  # in UTF-8 bytes; file systems allow 255 for a whole name


def safe_name(name: str, otherwise: str) -> str:
    """A file or folder name on Linux, macOS and Windows; ``otherwise`` when nothing is left.

    >>> safe_name("AC/DC: live?", "x"), safe_name("..", "novel 1"), safe_name("con.txt", "x")
    ('AC_DC_ live_', 'novel 1', '_con.txt')
    """
    text = "".join(c for c in unicodedata.normalize("NFC", name) if c.isprintable() or c == "/")
    text = _FORBIDDEN.sub("_", text).strip(" .")
    stem, dot, ending = text.rpartition(".")
    if not dot or len(ending) > 8:
        stem, ending = text, ""
    while len(stem.encode("utf-8", "replace")) > _LONGEST:
        stem = stem[:-1]
    text = f"{stem.rstrip(' .') if not dot else stem}{'.' if ending else ''}{ending}"
    if not text or not text.strip("._ "):
        return otherwise
    return f"_{text}" if _RESERVED.fullmatch(text) else text


def folder_names(categories: Iterable[tuple[int, str]]) -> dict[int, str]:
    """A folder for every category, no two equal where case does not count."""
    taken: set[str] = set()
    folders: dict[int, str] = {}
    for category, name in sorted(categories):
        folders[category] = _free(safe_name(name, f"category {category}"), taken)
    return folders


class Places:
    """Paths inside the target, each given once."""

    def __init__(self, keep_folders: bool) -> None:
        self._keep = keep_folders
        self._taken: dict[str, set[str]] = {}

    def place(self, folder: str, image: str, ending: str | None = None) -> PurePosixPath:
        """Where an image goes: its own file name, with a number when that is taken."""
        parts = [part for part in re.split(r"[/\\]", image) if part not in ("", ".", "..")] or ["_"]
        name = safe_name(parts[-1], "image")
        if ending is not None and PurePosixPath(name).suffix.lower() != ending:
            name += ending
        inner = [safe_name(part, "_") for part in parts[:-1]] if self._keep else []
        where = PurePosixPath(folder, *inner)
        return where / _free(name, self._taken.setdefault(str(where).casefold(), set()))


def _free(name: str, taken: set[str]) -> str:
    stem, ending = PurePosixPath(name).stem, PurePosixPath(name).suffix
    candidate, number = name, 1
    while _key(candidate) in taken:
        number += 1
        candidate = f"{stem}-{number}{ending}"
    taken.add(_key(candidate))
    return candidate


def _key(name: str) -> str:
    """Names that some file system takes for the same."""
    return unicodedata.normalize("NFD", name).casefold()
