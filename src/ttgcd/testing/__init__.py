"""Checks for methods of one's own: the battery that every method here passes."""

from __future__ import annotations

import warnings
from typing import Any

from ttgcd.methods.base import Method

__all__ = ["check_method"]


def check_method(method: type[Method], **config: Any) -> None:
    """Put a method through the whole battery; an AssertionError names the promise it breaks.

    Parameters
    ----------
    method
        The class. Its configuration should be small: streams of some 90 samples are used, so give
        a method with a warm-up one of 40 samples or so.
    config
        Arguments of the constructor.

    Examples
    --------
    >>> from ttgcd.methods.zero_shot import ZeroShot
    >>> check_method(ZeroShot)
    """
    from ttgcd.testing.checks import CHECKS

    with warnings.catch_warnings():
        # Few distinct samples are the point of several checks.
        warnings.simplefilter("ignore", UserWarning)
        for check in CHECKS:
            try:
                check(lambda: method(**config))
            except AssertionError as error:
                promise = check.__name__.removeprefix("check_").replace("_", " ")
                raise AssertionError(f"{method.__name__}: {promise}: {error}") from error
