"""Moving files so that it can be taken back, whenever it was stopped.

The journal, ``ttgcd-moved.json`` in the target, tells every move before the first one is made. A
move is a hard link and then the removal of the old name (a copy where links do not reach): at every
moment a file has at least one of its two names, and an existing file is never overwritten.
"""

from __future__ import annotations

import errno
import filecmp
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ttgcd.errors import InputError
from ttgcd.storage.durable import sync_folder, write_atomic, writing

JOURNAL = "ttgcd-moved.json"
FORMAT = "ttgcd.moved/1"
_UNFINISHED = ".unfinished"


def move_all(pairs: list[tuple[Path, PurePosixPath]], target: Path) -> None:
    """Move every file to its place in ``target``, a folder that is made for it."""
    missing = [path for path, _ in pairs if not path.is_file()]
    if missing:
        raise InputError(f"{str(missing[0])!r} is gone: nothing was moved")
    target.mkdir()
    record = {"format": FORMAT, "moves": [[str(path), str(place)] for path, place in pairs]}
    write_atomic(target / JOURNAL, json.dumps(record, indent=0).encode())
    folders = set()
    for path, place in pairs:
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        _move(path, target / place)
        folders |= {path.parent, (target / place).parent}
    for folder in sorted(folders):
        sync_folder(folder)


def move_back(target: str | Path) -> int:
    """Undo a move, also one that was interrupted; how many files went back.

    A file whose old place is taken by another one stays where it is, and an InputError tells it.
    """
    target = Path(target)
    path = target / JOURNAL
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        moves = [(Path(old), PurePosixPath(place)) for old, place in record["moves"]]
        if record["format"] != FORMAT:
            raise ValueError(record["format"])
    except OSError:
        raise InputError(f"{str(target)!r} holds no moved images: no {JOURNAL} in it") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{str(path)!r} is damaged: {error}") from None
    back, stuck = 0, []
    with writing(target, "then undo again"):
        for old, place in moves:
            here = target / place
            here.with_name(here.name + _UNFINISHED).unlink(missing_ok=True)
            if not os.path.lexists(here):
                continue  # it had not been moved yet, or is back already
            if os.path.lexists(old):
                if os.path.samefile(old, here) or filecmp.cmp(old, here, shallow=False):
                    here.unlink()  # stopped between the new name and the removal of the old
                    back += 1
                else:
                    stuck.append(old)
                continue
            old.parent.mkdir(parents=True, exist_ok=True)
            _move(here, old)
            back += 1
        for folder in sorted({old.parent for old, _ in moves}):
            sync_folder(folder)
        if stuck:
            raise InputError(
                f"{len(stuck)} files cannot go back because another file is there, the first: "
                f"{str(stuck[0])!r}. Move that away, then undo again"
            )
        path.unlink()
        for folder in sorted(
            {target / parent for _, place in moves for parent in place.parents}, reverse=True
        ):
            with suppress(OSError):  # not empty: somebody else's files are in it
                folder.rmdir()
    return back


def _move(path: Path, place: Path) -> None:
    """Give a file its new name, then take the old one; never over another file."""
    try:
        os.link(path, place)
    except FileExistsError:
        if not os.path.samefile(path, place):
            raise
    except OSError:
        _copy(path, place)
    path.unlink()


def _copy(path: Path, place: Path) -> None:
    """For two file systems, or one without hard links."""
    unfinished = place.with_name(place.name + _UNFINISHED)
    with open(path, "rb") as reading, open(unfinished, "wb") as copy:
        shutil.copyfileobj(reading, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())
    shutil.copystat(path, unfinished)
    if os.path.lexists(place):
        unfinished.unlink()
        raise FileExistsError(errno.EEXIST, "File exists", str(place))
    os.rename(unfinished, place)
