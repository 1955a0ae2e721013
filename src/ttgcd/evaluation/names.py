"""Class names as given on the command line."""

from __future__ import annotations

from pathlib import Path

from ttgcd.errors import InputError


def parse_names(argument: str) -> list[str]:
    """Names from ``"cat,dog"`` or, one a line, from the file in ``"@names.txt"``.

    >>> parse_names("cat, dog")
    ['cat', 'dog']
    """
    if argument.startswith("@"):
        path = Path(argument[1:])
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot read the class names ({error})") from error
    else:
        path, lines = Path("--known"), argument.split(",")
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise InputError(f"{path}: holds no class name")
    return names
