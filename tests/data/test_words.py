"""The shipped vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttgcd.data import path
from ttgcd.data.words import vocabulary
from ttgcd.datasets.classes import class_names

LISTS = Path(__file__).parents[2] / "training" / "words"


def listed(name: str) -> set[str]:
    lines = (LISTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def test_no_word_comes_twice_whatever_its_case() -> None:
    words = [word.casefold() for word in vocabulary()]
    assert len(words) == len(set(words))


def test_words_are_clean() -> None:
    assert all(word == word.strip() and "_" not in word and len(word) > 2 for word in vocabulary())


def test_everyday_things_are_in_it_and_function_words_are_not() -> None:
    words = set(vocabulary())
    assert {"bicycle", "tooth", "mountain", "mushroom", "dog", "firefighter"} <= words
    assert not {"small", "great", "two", "have"} & words


@pytest.mark.parametrize("kind", ["offensive", "refused"])
def test_no_word_of_the_kept_lists_is_offered_as_a_name(kind: str) -> None:
    refused = {word for word in listed(kind) if "*" not in word}
    assert len(refused) > 400
    assert not (set(vocabulary()) & refused) - listed("allowed")


def test_words_that_were_once_suggested_for_photographs_are_gone() -> None:
    bad = "terrorist prostitute slave homosexual idiot genitals buttocks hormone communist gypsy"
    assert not {*bad.split(), "female person", "house of prostitution"} & set(vocabulary())


def test_persons_bodies_and_materials_are_only_those_that_were_read() -> None:
    lines = path("names", "nouns.tsv").read_text(encoding="utf-8").splitlines()
    kinds = dict(line.split("\t") for line in lines)
    reviewed = {"person", "body", "substance", "phenomenon", "shape"}
    assert {word for word, kind in kinds.items() if kind in reviewed} <= listed("allowed")
    assert listed("allowed") <= set(kinds)


@pytest.mark.parametrize("benchmark", ["cifar10", "cifar100", "domainnet", "imagenet"])
def test_it_does_not_begin_with_the_classes_of_a_benchmark(benchmark: str) -> None:
    """They are in it as any other word is: in the order of how common they are."""
    words = vocabulary()
    place = {word: at for at, word in enumerate(words)}
    places = [place[name] for name in map(str.casefold, class_names(benchmark)) if name in place]
    first = words[: len(places)]
    assert len(set(first) & {name.casefold() for name in class_names(benchmark)}) < len(first) / 2


def test_the_licence_of_the_nouns_ships_beside_them() -> None:
    assert "Princeton University" in path("names", "nouns.LICENSE").read_text()
