from __future__ import annotations

import numpy as np

from tests.prototypes.worlds import world
from ttgcd.evaluation import split_accuracy
from ttgcd.prototypes.calibration import Geometry, Standard
from ttgcd.prototypes.partition import Partition, centres_of
from ttgcd.prototypes.refit import TEXT_SHARE, Restarts, Words, fit, resized
from ttgcd.prototypes.text_evidence import Texts, known_bonus

FEW = Restarts(2, 1)


def test_a_fit_recovers_the_classes_and_known_ones_have_their_own_columns():
    rows, true, texts = world(6, 6)
    fitted = fit(rows, texts, 6, (0, 1), FEW)
    assert split_accuracy(fitted.labels, true, 6).all > 0.9
    assert (fitted.labels == true)[true < 6].mean() > 0.85
    assert np.array_equal(fitted.model(rows).argmax(axis=1), fitted.labels)


def test_words_of_novel_categories_are_those_of_their_classes():
    rows, true, texts = world(6, 6)
    fitted = fit(rows, texts, 6, (0, 1), FEW)
    right = 0
    for column in range(6):
        mine = true[fitted.labels == 6 + column]
        right += int(np.bincount(mine).argmax()) - 6 == fitted.words[column, 0]
    assert right >= 4


def test_starts_are_told_apart_by_how_far_words_bear_them_out():
    rows, true, texts = world(6, 6)
    geometry, names = Geometry.of(rows), Standard.of(rows, texts.anchors)
    bonus = known_bonus(names, 0.1, 6)
    words = Words(6, rows, geometry(rows), bonus, Standard.of(rows, texts.words), 0.1)
    mixed = np.where(true < 6, true, 6 + np.arange(len(true)) % 6)
    for labels in (true, mixed):
        start = Partition(labels, centres_of(words.mapped, labels, 12), 0.0)
        spoken = words.spoken(start)
        mine = spoken.partition.labels
        says = [int(np.argmax(spoken.bonus(row[None])[0])) for row in rows]
        share = np.mean([s == m for s, m in zip(says, mine, strict=True) if m >= 6])
        assert np.isclose(spoken.borne_out, share)
        assert np.isclose(spoken.worth, spoken.partition.value + 0.1 * share)
    right, wrong = (
        words.spoken(Partition(x, centres_of(words.mapped, x, 12), 0.0)) for x in (true, mixed)
    )
    assert right.borne_out > wrong.borne_out + 0.1
    assert right.worth > wrong.worth


def test_with_words_that_can_be_trusted_many_classes_are_found():
    rows, true, texts = world(10, 30, each=12, noise=1.4)
    found = fit(rows, texts, 30, (0, 1), FEW)
    assert found.trust.share == TEXT_SHARE
    assert split_accuracy(found.labels, true, 10).all > 0.87  # spread seeds alone: 0.79


def test_a_fit_that_goes_on_keeps_most_labels():
    rows, _, texts = world(6, 6)
    first = fit(rows[:300], texts, 6, (0, 1), FEW)
    before = first.model(rows).argmax(axis=1)
    again = fit(rows, texts, 6, (0, 2), FEW, before, 6, first.trust)
    assert (again.labels == before).mean() > 0.9


def test_without_words_and_without_novel_classes_a_fit_still_works():
    rows, true, texts = world(4, 0)
    fitted = fit(rows, Texts.of(texts.anchors, None, texts.scale), 0, (0, 1), FEW)
    assert (fitted.labels == true).mean() > 0.9
    assert fitted.words.shape == (0, 0)


def test_missing_centres_begin_where_rows_are_not_explained():
    rows, true, _ = world(2, 2, noise=0.3)
    old = centres_of(rows[true < 3], true[true < 3], 3)
    new = resized(rows, old, 2, np.zeros((len(rows), 2), np.float32), np.random.default_rng(0))
    assert np.array_equal(new[:3], old)
    nearest = int((rows @ new[3]).argmax())
    assert true[nearest] == 3


def test_the_centre_that_is_missed_least_goes_first():
    rows, true, _ = world(2, 2, noise=0.3)
    centres = centres_of(rows, true, 4)
    half = np.flatnonzero(true == 3)[:20]
    doubled = np.concatenate([centres, centres_of(rows[half], np.zeros(20, np.int64), 1)])
    known = np.zeros((len(rows), 2), np.float32)
    left = resized(rows, doubled, 2, known, np.random.default_rng(0))
    assert len(left) == 4
    # One of the two centres of class 3 went; the others are as they were.
    assert np.array_equal(left[:3], centres[:3])
    assert not len(resized(rows, doubled, 0, known, np.random.default_rng(0))) > 2
