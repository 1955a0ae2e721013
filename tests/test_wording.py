"""Messages: the library speaks Python, the command line speaks options."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import ttgcd
from ttgcd import wording

ROOT = Path(ttgcd.__file__).parent
#: rooms that the command line alone calls, and messages that name a whole command
SPEAK_OPTIONS = ("cli", "bench", "datasets")


def test_no_message_of_the_library_names_an_option_of_the_command_line() -> None:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(SPEAK_OPTIONS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                texts = [n.value for n in ast.walk(node.exc) if isinstance(n, ast.Constant)]
                said = " ".join(text for text in texts if isinstance(text, str))
                if re.search(r"(?<![\w-])--[a-z]", said):
                    found.append(f"{name}:{node.lineno}")
    assert not found


def test_a_path_that_looks_like_an_argument_is_left_alone() -> None:
    assert wording.as_options("no such file: 'a=b.jpg'") == "no such file: 'a=b.jpg'"
