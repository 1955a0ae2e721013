"""Images in folders by category: hard links, symbolic links, copies, or moved with a journal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ttgcd.discovery.export.items import Exported, Item, Items
from ttgcd.discovery.export.moving import move_all
from ttgcd.discovery.export.placing import Places, folder_names
from ttgcd.errors import InputError
from ttgcd.storage.durable import sync_folder, writing


def to_folders(items: Items, target: Path, how: str, keep_folders: bool) -> Exported:
    """One folder a category in ``target``, which appears as a whole or not at all."""
    names = folder_names({(item.category, item.name) for item in items})
    places = Places(keep_folders)
    if how == "copy":
        with whole(target) as unfinished:
            for item in items:
                data, ending = items.bytes_of(item)
                path = unfinished / places.place(names[item.category], item.id, ending)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return Exported(target, len(items), items.notes())
    pairs = [
        (items.path(item).resolve(), places.place(names[item.category], item.id)) for item in items
    ]
    if how == "move":
        _once(pairs)
        with writing(target, "then move again"):
            move_all(pairs, target)
        return Exported(target, len(items), items.notes())
    make: Callable[[Path, Path], None] = _symlink if how == "symlink" else _hard_link
    with whole(target) as unfinished:
        for path, place in pairs:
            (unfinished / place).parent.mkdir(parents=True, exist_ok=True)
            make(path, unfinished / place)
    return Exported(target, len(items), items.notes())


def _once(pairs: Sequence[tuple[Path, object]]) -> None:
    """A file that two images are links to cannot be moved to two places."""
    seen: set[Path] = set()
    for path, _ in pairs:
        if path in seen:
            raise InputError(f"two images are the same file {str(path)!r}: use links or copies")
        seen.add(path)


def _symlink(path: Path, place: Path) -> None:
    place.symlink_to(path)


def _hard_link(path: Path, place: Path) -> None:
    try:
        os.link(path, place)
    except OSError as error:
        raise InputError(
            f"cannot make a hard link to {str(path)!r} ({error.strerror}): the target must be on "
            "the same file system, or use `how=symlink` or `how=copy`"
        ) from None


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A folder that gets its name when all of it is there; after a failure nothing is left."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    with writing(target.parent, "then export again"):
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        try:
            yield unfinished
            if os.path.lexists(target):
                raise InputError(
                    f"{str(target)!r} has appeared meanwhile: choose another `out=...`"
                )
            os.rename(unfinished, target)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def numbered(items: Items) -> Iterator[tuple[int, Item, bytes, str]]:
    """Every image with a number, its bytes and its extension."""
    for number, item in enumerate(items):
        data, ending = items.bytes_of(item)
        yield number, item, data, ending
