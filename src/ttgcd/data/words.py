"""Words to suggest names from: the shipped vocabulary, commonest first."""

from __future__ import annotations

from functools import cache

from ttgcd.data import path

#: Lists of class names that come before the nouns: what data sets of pictures show.
_LISTS = ("cifar10", "cifar100", "domainnet", "imagenet")


def vocabulary(nouns: int = 4000) -> tuple[str, ...]:
    """Distinct names of visible things, most likely ones first.

    The class names of CIFAR, DomainNet and ImageNet, then the ``nouns`` commonest of the 12,245
    WordNet nouns that ship (``data/names/README.md``).

    >>> words = vocabulary()
    >>> len(words) > 4500, "hourglass" in words, len(vocabulary(0)) < 1500
    (True, True, True)
    """
    return _distinct(nouns)


@cache
def _distinct(nouns: int) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for name in _LISTS:
        for line in _lines(f"{name}.txt"):
            word = line.split("(")[0].replace("_", " ").strip()
            found.setdefault(word.casefold(), word)
    for line in _lines("nouns.tsv")[:nouns]:
        word = line.split("\t")[0]
        found.setdefault(word.casefold(), word)
    return tuple(found.values())


def _lines(name: str) -> list[str]:
    return path("names", name).read_text(encoding="utf-8").splitlines()
