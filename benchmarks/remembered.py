"""Pure parts of the method answer once: one task is measured many times with one thing changed.

Only functions whose every input is an argument, and none that an ingredient changes inside.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from typing import Any
from unittest.mock import patch

import scipy.cluster.hierarchy

from ttgcd.prototypes import census, refit, scout_stream
from ttgcd.prototypes.neighbourhood import Neighbourhood
from ttgcd.prototypes.text_evidence import Texts

_answers: dict[bytes, Any] = {}
_graph = Neighbourhood.of


def forget() -> None:
    """Before another task: its rows are others."""
    _answers.clear()


@contextmanager
def remembering(trust: bool, fits: bool) -> Iterator[None]:
    """``trust``: how far clusters bear the names out, where nothing is changed by which that is
    found; ``fits``: whole fits, where only the count is changed."""
    tree = census._tree
    parts: list[tuple[Any, str, Any]] = [
        (scipy.cluster.hierarchy, "linkage", _once(scipy.cluster.hierarchy.linkage)),
        (census, "_tree", _once(lambda *args: list(tree(*args)))),
        (census, "silhouette", _once(census.silhouette)),
        (census._Names, "agree", _once(census._Names.agree)),
        (census._Speakers, "quality", _once(census._Speakers.quality)),
        (Neighbourhood, "of", staticmethod(_once(_graph))),
        (Neighbourhood, "directions", _once(Neighbourhood.directions)),
        (Texts, "read", _once(Texts.read)),
        (Texts, "gate", _once(Texts.gate)),
    ]
    if trust:
        parts.append((refit, "agreement", _once(refit.agreement)))
    if fits:
        parts.append((scout_stream, "fit", _once(scout_stream.fit)))
    with ExitStack() as stack:
        for owner, name, value in parts:
            stack.enter_context(patch.object(owner, name, value))
        yield


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    # By name: the same function is wrapped anew for every measurement.
    name = f"{function.__module__}.{function.__qualname__}".encode()

    def answer(*args: Any) -> Any:
        key = blake2b(name + pickle.dumps(args, 5), digest_size=16).digest()
        if key not in _answers:
            _answers[key] = function(*args)
        return _answers[key]

    return answer
