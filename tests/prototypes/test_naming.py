"""Names for groups: a world where words and images lie apart by a constant offset."""

from __future__ import annotations

import numpy as np
import pytest

from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.naming import name_groups

WORDS = ["cat", "moose", "elk", "anvil", "rocket", "thing"]
DIM = 32


@pytest.fixture
def world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images of groups 0..4 about words 0..4, far from the words by one common direction; the last
    word points in that direction: it fits every image."""
    rng = np.random.default_rng(0)
    concept = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    gap = concept[10]
    texts = normalise(np.concatenate([concept[:5] + 0.2 * concept[11], gap[None]]))
    groups = np.repeat(np.arange(5), 30)
    noise = 0.05 * rng.standard_normal((len(groups), DIM))
    images = normalise(0.4 * concept[groups] + gap + noise)
    return images, groups, texts


def name(world: tuple[np.ndarray, np.ndarray, np.ndarray], **options):
    images, groups, texts = world
    return name_groups(images, groups, [1, 2, 3, 4], WORDS, texts, **options)


def test_every_group_gets_its_word_across_the_modality_gap(world) -> None:
    found = name(world)
    assert [found[g].name for g in (1, 2, 3, 4)] == WORDS[1:5]
    assert found[1].words[0] == "moose" and found[1].agreement == 1.0


def test_a_word_that_fits_everything_is_nobodys_name(world) -> None:
    images, _, texts = world
    assert (images @ texts.T).argmax(axis=1).tolist() == [5] * len(
        images
    )  # the raw cosine's choice
    assert all(names.words[0] != "thing" for names in name(world).values())


def test_known_names_are_never_suggested(world) -> None:
    found = name(world, exclude=["Moose", "cat"])
    assert all("moose" not in names.words for names in found.values())


def test_one_word_is_given_to_one_group_only_and_suggested_to_no_other(world) -> None:
    images, groups, texts = world
    halves = np.where((groups == 1) & (np.arange(len(groups)) % 2 == 0), 9, groups)
    found = name_groups(images, halves, [1, 9], WORDS, texts)
    assert sorted(map(str, (found[1].name, found[9].name))) == ["None", "moose"]
    named, other = sorted(found.values(), key=lambda names: names.name is None)
    assert named.words[0] == "moose" and "moose" not in other.words


def test_a_mixed_group_has_no_good_name_but_suggestions(world) -> None:
    images, groups, texts = world
    mixed = np.where(np.arange(len(groups)) % 4 == 0, 9, groups)
    found = name_groups(images, mixed, [9], WORDS, texts)
    assert found[9].name is None and len(found[9].words) == 5


def test_a_rare_word_must_fit_better_than_a_common_one() -> None:
    rng = np.random.default_rng(1)
    images = normalise(rng.standard_normal((40, DIM)))
    images[:20] = normalise(images[:20] * 0.1 + images[0])
    words = [f"word {i}" for i in range(9000)]
    texts = normalise(rng.standard_normal((9000, DIM)))
    texts[3] = texts[8999] = normalise(images[:20].mean(axis=0))
    groups = np.repeat([0, 1], 20)
    assert name_groups(images, groups, [0], words, texts)[0].words[0] == "word 3"
    texts[3] = -texts[3]
    assert name_groups(images, groups, [0], words, texts)[0].words[0] == "word 8999"


def test_a_group_without_members_or_a_vocabulary_without_words_gives_nothing(world) -> None:
    images, groups, texts = world
    assert name_groups(images, groups, [77], WORDS, texts)[77].words == ()
    assert name_groups(images, groups, [1], WORDS, texts, exclude=WORDS)[1].name is None


def test_scores_are_the_share_of_members_that_want_the_word(world) -> None:
    for names in name(world).values():
        assert all(0 <= score <= 1 for score in names.scores)
        assert names.scores[0] == 1.0
