"""An argument parser whose complaints come from the command that was called."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """Refuses what it does not know by itself.

    ``argparse`` lets a command pass unknown words up to the program, which then prints its own
    usage: the list of commands, where the options of one command were wanted.
    """

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._about(unknown))
        return found, unknown

    def _about(self, unknown: Sequence[str]) -> str:
        options = [word for word in unknown if word.startswith("-")]
        if not options:
            said = f"what is {unknown[0]!r}?"
            if any(os.path.exists(word) for word in unknown):
                said += " Files and folders go together, before the options"
            elif len(unknown) > 1 or " " not in unknown[0]:
                said += " Put a value that holds spaces in quotes"
            return said
        text = f"no such option: {options[0].split('=')[0]}"
        mine = [name for action in self._actions for name in action.option_strings]
        close = difflib.get_close_matches(options[0].split("=")[0], mine, n=2, cutoff=0.6)
        return text + (f"; did you mean {' or '.join(close)}?" if close else "")
