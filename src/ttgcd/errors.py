"""Errors that a user can act on."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used.

    The message is one line: what is wrong, where, and how to fix it. The command line prints it
    without a traceback and exits with code 2.
    """

    def __init__(self, message: str) -> None:
        # A file name or a library's message in it may hold line breaks.
        super().__init__(" ".join(message.splitlines()))
