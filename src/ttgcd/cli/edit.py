"""ttgcd edit: put a run's result right; every edit can be undone and survives the next run."""

from __future__ import annotations

import argparse
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

    category = ("category", {"type": int, "help": "id of the category"})
    images = ("images", {"nargs": "+", "help": "image ids as in the table, or @file (one a line)"})
    number = ("number", {"type": int, "nargs": "?", "help": "edit number (default: the last one)"})
    action("rename", "give a category a name", category, ("name", {"nargs": "+"}))
    action("merge", "merge a category into another", category, ("into", {"type": int}))
    action(
        "split",
        "make a new category of some images of one",
        category,
        ("images", {**images[1], "nargs": "*"}),
        ("--in-two", {"action": "store_true", "help": "split it in two by what they look like"}),
        ("--name", {"help": "name of the new category"}),
    )
    action("move", "move images into a category", ("into", {"type": int}), images)
    action("hide", "hide a category that does not interest", category)
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

    folder = EditedFolder(args.out)
    if args.action == "log":
        _show(folder)
        return 0
    if args.action in ("undo", "redo"):
        edit = getattr(folder, args.action)(args.number)
        print(f"{args.action}: edit {edit.number}, {edit.text()}")
        return 0
    if args.action == "apply":
        after = folder.apply_file(args.file)
    else:
        after = folder.edit(_edit(folder, args))
    print(f"edit {folder.log()[-1].number}: {folder.log()[-1].text()}")
    for number, reason in after.unapplied.items():
        print(f"note: edit {number} does not apply: {reason}")
    return 0


def _edit(folder: EditedFolder, args: argparse.Namespace) -> Edit:
    from ttgcd.discovery.edits.records import parse

    said: dict[str, Any] = {"op": args.action}
    for field in ("category", "into"):
        if hasattr(args, field):
            said[field] = getattr(args, field)
    if getattr(args, "name", None) is not None:
        said["name"] = " ".join(args.name) if isinstance(args.name, list) else args.name
    if getattr(args, "in_two", False):
        said["images"] = list(folder.in_two(args.category).images)
    elif hasattr(args, "images"):
        said["images"] = _images(args.images)
    if args.action == "mark":
        said["into"] = folder.known_class(args.known)
    return parse(said, "ttgcd edit")


def _images(given: list[str]) -> list[str]:
    from ttgcd.streams.labels import read_names

    if len(given) == 1 and given[0].startswith("@"):
        return list(read_names(given[0]))
    return given


def _show(folder: EditedFolder) -> None:
    from ttgcd.discovery.edits.log import active

    edits, unapplied = folder.log(), folder.unapplied()
    counting = {edit.number for edit in active(edits)}
    if not edits:
        print("no edits")
    for edit in edits:
        state = "" if edit.number in counting or edit.target is not None else "  (undone)"
        if edit.number in unapplied:
            state = f"  (does not apply: {unapplied[edit.number]})"
        print(f"{edit.number:>4}  {edit.when}  {edit.who:<10}  {edit.text()}{state}")
