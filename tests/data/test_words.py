"""The shipped vocabulary."""

from __future__ import annotations

from ttgcd.data import path
from ttgcd.data.words import vocabulary


def test_no_word_comes_twice_whatever_its_case() -> None:
    words = [word.casefold() for word in vocabulary(20_000)]
    assert len(words) == len(set(words))


def test_words_are_clean_and_in_an_order_that_a_shorter_list_shares() -> None:
    longer = vocabulary(3000)
    assert all(word == word.strip() and "_" not in word and word for word in longer)
    assert longer[: len(vocabulary(1000))] == vocabulary(1000)


def test_everyday_things_are_in_it_and_function_words_are_not() -> None:
    words = set(vocabulary())
    assert {"hourglass", "shopping cart", "bicycle", "tooth", "mountain", "mushroom"} <= words
    assert not {"small", "great", "two", "have"} & words


def test_the_licence_of_the_nouns_ships_beside_them() -> None:
    assert "Princeton University" in path("names", "nouns.LICENSE").read_text()
