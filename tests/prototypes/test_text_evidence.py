from __future__ import annotations

import numpy as np

from tests.prototypes.worlds import world
from ttgcd.prototypes.calibration import Standard, unit
from ttgcd.prototypes.text_evidence import (
    Bonus,
    Texts,
    best_words,
    confident,
    confident_share,
    known_bonus,
    speaks,
    word_bonus,
)

RNG = np.random.default_rng(0)
ROWS = unit(RNG.normal(size=(40, 6)))
ANCHORS, WORDS = unit(RNG.normal(size=(3, 6))), unit(RNG.normal(size=(7, 6)))


def test_words_that_mean_a_known_name_are_dropped():
    texts = Texts.of(ANCHORS, np.concatenate([ANCHORS[1:2], WORDS]), 10.0)
    assert not any(np.allclose(word, ANCHORS[1]) for word in texts.words)
    assert len(Texts.of(ANCHORS, None, 10.0).words) == 0


def test_what_the_texts_say_is_their_softmax_mean():
    texts = Texts(ANCHORS, WORDS, 10.0)
    everything = np.concatenate([ANCHORS, WORDS])
    for row, said in zip(ROWS, texts.read(ROWS), strict=True):
        p = np.exp(10.0 * everything @ row)
        assert np.allclose(said, unit((p / p.sum()) @ everything), atol=1e-5)


def test_the_gate_is_the_log_odds_of_names_against_words():
    gate = Texts(ANCHORS, WORDS, 10.0).gate(ROWS, np.zeros((40, 3)))
    known, other = np.exp(10.0 * ROWS @ ANCHORS.T).sum(1), np.exp(10.0 * ROWS @ WORDS.T).sum(1)
    assert np.allclose(gate, np.log(known / other), atol=1e-3)


def test_without_words_the_gate_is_the_best_logit_and_the_share_follows_the_known_share():
    texts = Texts.of(ANCHORS, None, 10.0)
    logits = RNG.normal(size=(40, 3))
    assert np.array_equal(texts.gate(ROWS, logits), logits.max(axis=1))
    assert [confident_share(share) for share in (0.2, 0.5, 0.9)] == [0.2, 0.5, 0.5]


def test_confident_samples_are_the_best_half_of_each_name():
    names = np.array([0, 0, 0, 1, 1, 2])
    gate = np.array([1.0, 3.0, 2.0, 5.0, 9.0, -7.0])
    assert confident(names, gate, 3, 0.5).tolist() == [False, True, True, False, True, True]


def test_the_known_bonus_is_the_weighted_standardised_logit_above_the_offset():
    names = Standard.of(ROWS, ANCHORS)
    bonus = known_bonus(names, 0.1, 2)
    assert np.allclose(bonus(ROWS)[:, :3], 0.1 * (names(ROWS) - 1.5), atol=1e-4)
    assert not bonus(ROWS)[:, 3:].any()


def test_the_word_bonus_is_the_restandardised_mean_logit_of_the_words():
    names, words = Standard.of(ROWS, ANCHORS), Standard.of(ROWS, WORDS)
    known: Bonus = known_bonus(names, 0.1, 1)
    chosen = best_words(words, ROWS[:5].mean(axis=0, keepdims=True))
    mean = words(ROWS)[:, chosen[0]].mean(axis=1)
    expected = 0.1 * ((mean - mean.mean()) / mean.std() - 1.5)
    found = word_bonus(known, words, chosen, ROWS, 0.1)(ROWS)
    assert np.allclose(found[:, 3], expected, atol=1e-3)
    assert np.allclose(found[:, :3], known(ROWS)[:, :3])


def test_best_words_have_the_highest_mean_standardised_logit_in_the_group():
    words = Standard.of(ROWS, WORDS)
    expected = np.argsort(-words(ROWS[:9]).mean(axis=0))[:3]
    assert best_words(words, ROWS[:9].mean(axis=0, keepdims=True))[0].tolist() == expected.tolist()


def test_a_name_speaks_for_its_images_or_is_not_believed():
    rows, true, texts = world(3, 2, each=40)
    members = true == 3
    assert speaks(rows, members, texts.words[0])  # its own name
    assert not speaks(rows, members, texts.words[1])  # another one's
    assert not speaks(rows, np.zeros(len(rows), bool), texts.words[0])
