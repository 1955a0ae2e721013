"""ttgcd edit: put a run's result right; every edit can be undone and survives the next run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttgcd.discovery.edits import Edit, EditedFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", help="the folder that a finished run left")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, summary: str, *arguments: tuple[str, dict[str, Any]]) -> None:
        sub = actions.add_parser(name, help=summary, description=summary.capitalize() + ".")
        for flag, options in arguments:
            sub.add_argument(flag, **options)

    named = "name of the category as it is shown, in quotes ('novel 9'), or its id"
    category = ("category", {"help": named})
    into = ("into", {"help": named})
    images = ("images", {"nargs": "+", "help": "image ids as in the table, or @file (one a line)"})
    number = ("number", {"type": int, "nargs": "?", "help": "edit number (default: the last one)"})
    action("rename", "give a category a name", category, ("name", {"nargs": "+"}))
    action("merge", "merge a category into another", category, into)
    action(
        "split",
        "make a new category of some images of one",
        category,
        ("images", {**images[1], "nargs": "*"}),
        ("--in-two", {"action": "store_true", "help": "split it in two by what they look like"}),
        ("--name", {"help": "name of the new category"}),
    )
    action("move", "move images into a category", into, images)
    action(
        "hide",
        "hide categories that do not interest",
        ("categories", {"nargs": "+", "help": "their names or ids"}),
    )
    action(
        "mark",
        "mark a new category as the known class that it is",
        category,
        ("known", {"help": "name or id of the known class"}),
    )
    action("undo", "take an edit back", number)
    action("redo", "make an undone edit count again", number)
    action("log", "show all edits")
    action(
        "apply",
        "make the edits of a file, all or none",
        ("file", {"help": "JSON, the download of the report page"}),
    )


def run(args: argparse.Namespace) -> int:
    from ttgcd.discovery.edits import EditedFolder
    from ttgcd.wording import as_options

    folder = EditedFolder(args.out)
    if args.action == "log":
        _show(folder)
        return 0
    before = folder.replayed()
    made, notes = len(folder.log()), _other_meanings(args, before.categories)
    if args.action in ("undo", "redo"):
        getattr(folder, args.action)(args.number)
        after = folder.replayed()
    elif args.action == "apply":
        after = folder.apply_file(args.file)
    else:
        after = folder.edit(*_edits(folder, args))
    for number, text in enumerate(folder.told()[made:], made + 1):
        print(f"edit {number}: {text}")
    print(_moved(before.assignments, after.assignments))
    notes += [f"edit {number} does not apply: {why}" for number, why in after.unapplied.items()]
    for note in notes:
        print(f"note: {as_options(note)}")
    return 0


def _edits(folder: EditedFolder, args: argparse.Namespace) -> list[Edit]:
    from ttgcd.discovery.edits.records import parse
    from ttgcd.errors import InputError

    if args.action == "hide":
        ids = dict.fromkeys(folder.category(said) for said in args.categories)
        return [parse({"op": "hide", "category": category}, "ttgcd edit") for category in ids]
    said: dict[str, Any] = {"op": args.action}
    for field in ("category", "into"):
        if hasattr(args, field):
            said[field] = folder.category(getattr(args, field))
    if getattr(args, "name", None) is not None:
        said["name"] = " ".join(args.name) if isinstance(args.name, list) else args.name
    if getattr(args, "in_two", False):
        said["images"] = list(folder.in_two(said["category"]).images)
    elif hasattr(args, "images"):
        if not args.images:
            raise InputError(
                "say which images are split off, or `in_two=True` to split it by their looks"
            )
        said["images"] = _images(args.images)
    if args.action == "mark":
        said["into"] = folder.known_class(args.known)
    return [parse(said, "ttgcd edit")]


def _images(given: list[str]) -> list[str]:
    from ttgcd.streams.labels import read_names

    if len(given) == 1 and given[0].startswith("@"):
        return list(read_names(given[0]))
    return given


def _other_meanings(args: argparse.Namespace, records: Sequence[dict[str, Any]]) -> list[str]:
    """Numbers that were taken for ids and may have been meant for names."""
    from ttgcd.discovery.edits.naming import find_category, other_meaning
    from ttgcd.errors import InputError

    notes = []
    for said in (
        *(getattr(args, field) for field in ("category", "into") if hasattr(args, field)),
        *getattr(args, "categories", ()),
    ):
        try:
            notes.append(other_meaning(said, find_category(said, records), records))
        except InputError:
            continue  # refused in a moment
    return [note for note in notes if note]


def _moved(before: Any, after: Any) -> str:
    """How many images are in another category than before."""
    from ttgcd.wording import counted

    is_now = after.column("category").to_numpy()
    moved = int((is_now != before.column("category").to_numpy()).sum())
    are = "is" if moved == 1 else "are"
    return f"{counted(moved, 'image')} {are} in another category now" if moved else "no image moved"


def _show(folder: EditedFolder) -> None:
    from ttgcd.discovery.edits.log import active

    edits, unapplied = folder.log(), folder.unapplied()
    counting = {edit.number for edit in active(edits)}
    if not edits:
        print("no edits")
    for edit, text in zip(edits, folder.told()):
        state = "" if edit.number in counting or edit.target is not None else "  (undone)"
        if edit.number in unapplied:
            state = f"  (does not apply: {unapplied[edit.number]})"
        print(f"{edit.number:>4}  {edit.when}  {edit.who:<10}  {text}{state}")
