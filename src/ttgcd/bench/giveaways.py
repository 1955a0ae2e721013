"""A vocabulary for measuring: without the words that give a hidden class's name away."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

_NO_LETTERS = re.compile(r"[\W\d_]+")
#: A shorter word is part of too many names to say anything: "ant" of "pants", "elephant", "plant".
SHORTEST = 4


def plain(name: str) -> str:
    """Letters in lower case, one blank between words.

    >>> plain("Forklift_truck (2)")
    'forklift truck'
    """
    return _NO_LETTERS.sub(" ", name.lower()).strip()


def harmless(words: Sequence[str], hidden: Sequence[str]) -> np.ndarray:
    """Which words may stay, as a mask: neither holds a hidden name nor is part of one.

    Synonyms are not known here: with "automobile" hidden, "car" stays.

    >>> harmless(["sports car", "carpet", "cart", "ant", "tree"], ["car", "plant", "oak tree"])
    array([False, False, False,  True, False])
    """
    names = sorted({plain(name) for name in hidden} - {""})
    if not names:
        return np.ones(len(words), bool)
    holds = re.compile("|".join(map(re.escape, names)))
    together = "\n".join(names)

    def stays(word: str) -> bool:
        part = len(word) >= SHORTEST and word in together
        return not part and holds.search(word) is None

    return np.array([stays(plain(word)) for word in words], bool)
