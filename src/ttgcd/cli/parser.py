"""An argument parser whose complaints come from the command that was called."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Sequence
from typing import Any, NoReturn

#: more than fit on a line or two
_MANY_OPTIONS = 8


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

    def error(self, message: str) -> NoReturn:
        """The complaint, not below a screenful of options that the command also has."""
        options = [action for action in self._actions if action.option_strings]
        if len(options) > _MANY_OPTIONS:
            places = [action for action in self._actions if not action.option_strings]
            short = argparse.ArgumentParser(f"{self.prog} [options]", add_help=False)
            for action in places:
                short._add_action(action)
            usage = short.format_usage().strip()
            message += f"\n{self.prog} --help lists the options"
        else:
            usage = self.format_usage().strip()
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and "required" in message:
                message += f"; choose one of {', '.join(action.choices)}"
        self.exit(2, f"{usage}\n{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """An unknown command comes with the one that was perhaps meant."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            close = difflib.get_close_matches(str(value), list(action.choices), n=2)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            names = ", ".join(action.choices)
            raise argparse.ArgumentError(
                None, f"no such command: {value}{hint or f' (there are {names})'}"
            )
        super()._check_value(action, value)

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
