"""Options by name: one that does not exist is explained, with the nearest that does."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ttgcd.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


class UnknownOption(InputError, TypeError):
    """An option that the call does not have."""


def explained(call: Callable[P, R]) -> Callable[P, R]:
    """The same call; a misspelt option is an InputError that names the right one."""
    known = list(inspect.signature(call).parameters)

    @wraps(call)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, 0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
                raise UnknownOption(f"{call.__name__} has no option {name!r}: {hint}")
        return call(*args, **kwargs)

    return checked
