"""How numbers, lists and options are said in messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: arguments whose option has another name
_OF_THEIR_OWN = {"`shuffle=False`": "--in-order"}
_ARGUMENT = re.compile(r"`([a-z_]+)=([^`]*)`")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "file"), counted(1200, "file"), counted(2, "class", "classes")
    ('1 file', '1,200 files', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def found(number: int, known: bool = True) -> str:
    """Categories that were found: novel ones beside known classes, groups where none is known.

    >>> found(3), found(1), found(1200, known=False)
    ('3 novel categories', '1 novel category', '1,200 groups')
    """
    if known:
        return counted(number, "novel category", "novel categories")
    return counted(number, "group")


def listed(items: Sequence[str], most: int = 10) -> str:
    """The first few of many.

    >>> listed(["cat", "dog", "cow"], most=2)
    'cat, dog and 1 more'
    """
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def known_classes(names: Sequence[str]) -> str:
    """What a run begins with.

    >>> known_classes(["cat", "dog"]), known_classes([])
    ('2 known classes: cat, dog', 'no known class: everything is grouped')
    """
    if not names:
        return "no known class: everything is grouped"
    return f"{counted(len(names), 'known class', 'known classes')}: {listed(names)}"


def by_extension(extensions: Iterable[str]) -> str:
    """How many files there are of each extension, most first.

    >>> by_extension([".xml", ".heic", ".xml", ""])
    '2 .xml, 1 .heic, 1 without extension'
    """
    counts: dict[str, int] = {}
    for extension in extensions:
        counts[extension] = counts.get(extension, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] == "", item[0]))
    return listed([f"{n:,} {extension or 'without extension'}" for extension, n in ordered], 6)


def as_options(message: str) -> str:
    """A message about Python arguments, as a user of the command line would say it.

    The library names an argument as `` `overwrite=True` ``; the command line has options.

    >>> as_options("start again with `overwrite=True` or another `out=...`")
    'start again with --overwrite or another --out'
    >>> as_options("give `novel=5`, leave out `shuffle=False`")
    'give --novel 5, leave out --in-order'
    """

    def option(match: re.Match[str]) -> str:
        if match[0] in _OF_THEIR_OWN:
            return _OF_THEIR_OWN[match[0]]
        flag = "--" + match[1].replace("_", "-")
        return flag if match[2] in ("True", "...") else f"{flag} {match[2]}"

    return _ARGUMENT.sub(option, message)
