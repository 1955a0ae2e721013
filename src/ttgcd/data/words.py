"""Words to suggest names from: the shipped vocabulary, commonest first."""

from __future__ import annotations

from functools import cache

from ttgcd.data import path


@cache
def vocabulary() -> tuple[str, ...]:
    """Distinct names of visible things, commonest first.

    Nouns of WordNet, chosen by a rule and read (``data/names/README.md``); no list of class names
    of any data set is among its sources.

    >>> words = vocabulary()
    >>> len(words) > 3900, "umbrella" in words, words[0]
    (True, True, 'water')
    """
    lines = path("names", "nouns.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(line.split("\t")[0] for line in lines)
