"""Class names that the user knows, and labels for scoring."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence

from ttgcd.errors import InputError

#: What separates names in the files of other programs; no class is called so.
_SEPARATORS = ";|\t"
_FILE_ENDINGS = (".txt", ".csv", ".tsv", ".json", ".list", ".lst", ".names", ".yaml", ".yml")


def read_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Class names from ``"cat,dog"``, from ``"@names.txt"`` (one a line), or from a sequence.

    Spaces around a name and blank lines of a file do not count. Empty and repeated names are
    refused: two equal names would be one category with two numbers. So is what looks like a path
    without its ``@``, or like several names that would become one.

    >>> read_names("cat, sea lion")
    ('cat', 'sea lion')
    """
    where = "the known names"
    if not isinstance(given, str):
        names = [str(name).strip() for name in given]
    elif given.startswith("@"):
        where = given[1:]
        names = [line.strip() for line in _text(where, "names").splitlines() if line.strip()]
        _refuse_tables(names, where)
    elif not given.strip():
        names = []
    else:
        names = [name.strip() for name in given.split(",")]
        _refuse_paths(names, given)
        _refuse_separators(names, "commas, as in 'cat,dog'", where)
    if not names:
        raise InputError(f"no class name in {where}: give at least one, as 'cat,dog' or @names.txt")
    seen: set[str] = set()
    repeated: list[str] = []
    for number, name in enumerate(names, 1):
        if not name:
            raise InputError(f"name {number} of {len(names)} in {where} is empty: remove it")
        if not name.isprintable():
            raise InputError(f"name {number} in {where} holds control characters: {name!r}")
        if name in seen and name not in repeated:
            repeated.append(name)
        seen.add(name)
    if repeated:
        shown = ", ".join(repr(name) for name in repeated)
        raise InputError(f"names given more than once in {where}: {shown}; keep one of each")
    return tuple(names)


def _refuse_paths(names: Sequence[str], given: str) -> None:
    """A class is not called ``names.csv``: the ``@`` was forgotten."""
    if len(names) == 1 and (
        names[0].lower().endswith(_FILE_ENDINGS) or (os.sep in given and os.path.exists(given))
    ):
        raise InputError(
            f"{given!r} is the name of a file: put @ in front to read the names from it, '@{given}'"
        )


def _refuse_separators(names: Sequence[str], way: str, where: str) -> None:
    for name in names:
        found = [sign for sign in _SEPARATORS if sign in name]
        if found:
            raise InputError(
                f"{name!r} in {where} looks like several names separated by {found[0]!r}: "
                f"separate them by {way}"
            )


def _refuse_tables(lines: Sequence[str], where: str) -> None:
    """Lines are names, and a name may hold a comma ("bear, brown"); a list or a table is none."""
    way = "line breaks: one name a line"
    _refuse_separators(lines, way, where)
    with_comma = [line for line in lines if "," in line]
    if not with_comma:
        return
    if where.lower().endswith(".csv"):
        raise InputError(
            f"{where} looks like a table ({with_comma[0]!r}): a file of names holds one name a "
            "line; save the column of names alone, as .txt"
        )
    at_the_edge = [line for line in with_comma if line[0] == "," or line[-1] == ","]
    if len(lines) == 1 or at_the_edge:
        raise InputError(
            f"{(at_the_edge or lines)[0]!r} in {where} looks like several names separated by ',': "
            f"separate them by {way}"
        )


def read_labels(path: str | os.PathLike[str]) -> dict[str, str]:
    """Labels by sample id from a CSV file with the columns ``id`` and ``label``."""
    where = os.fspath(path)
    rows = csv.reader(io.StringIO(_text(where, "labels"), newline=""), strict=True)
    labels: dict[str, str] = {}
    lines: dict[str, int] = {}
    try:
        header = [name.strip() for name in next(rows, [])]
        if header.count("id") != 1 or header.count("label") != 1:
            raise InputError(
                f"{where}, line 1: the header must name the columns 'id' and 'label', "
                f"not {','.join(header)!r}"
            )
        key, value = header.index("id"), header.index("label")
        for row in rows:
            line = rows.line_num
            if not row:
                continue
            if len(row) != len(header):
                raise InputError(
                    f"{where}, line {line}: {len(row)} fields instead of {len(header)}; "
                    "put fields that hold a comma in double quotes"
                )
            name, label = row[key], row[value].strip()
            if not name or not label:
                empty = "label" if name else "id"
                raise InputError(f"{where}, line {line}: the {empty} is empty")
            if name in labels:
                raise InputError(
                    f"{where}, line {line}: id {name!r} is already on line {lines[name]}"
                )
            labels[name], lines[name] = label, line
    except csv.Error as error:
        raise InputError(f"{where}, line {rows.line_num}: not valid CSV: {error}") from None
    if not labels:
        raise InputError(f"{where}: no row below the header")
    return labels


def _text(path: str, what: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise InputError(f"no such {what} file: {path!r}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the {what} file {path!r}: {reason}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None
