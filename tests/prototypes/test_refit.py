from __future__ import annotations

import numpy as np
from sklearn.metrics import silhouette_score

from tests.prototypes.worlds import world
from ttgcd.evaluation import split_accuracy
from ttgcd.prototypes.partition import Partition, centres_of
from ttgcd.prototypes.refit import TEXT_SHARE, Judge, Restarts, fit, resized
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.spoken import Spoken
from ttgcd.prototypes.text_evidence import Bonus, Texts

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
    new = resized(rows, old, 2, RowBonus.nothing(rows, 4), 2, np.random.default_rng(0))
    assert np.array_equal(new[:3], old)
    nearest = int((rows @ new[3]).argmax())
    assert true[nearest] == 3


def test_the_centre_that_is_missed_least_goes_first():
    rows, true, _ = world(2, 2, noise=0.3)
    centres = centres_of(rows, true, 4)
    half = np.flatnonzero(true == 3)[:20]
    doubled = np.concatenate([centres, centres_of(rows[half], np.zeros(20, np.int64), 1)])
    none = RowBonus.nothing(rows, 4)
    left = resized(rows, doubled, 2, none, 2, np.random.default_rng(0))
    assert len(left) == 4
    # One of the two centres of class 3 went; the others are as they were.
    assert np.array_equal(left[:3], centres[:3])
    assert not len(resized(rows, doubled, 0, none, 2, np.random.default_rng(0))) > 2


def test_a_partition_is_worth_its_silhouette_and_what_texts_bear_out():
    rows, true, _ = world(3, 3, noise=0.5)
    some, sure = np.arange(0, len(rows), 2), np.zeros(len(rows) // 2, bool)
    sure[:40] = true[some][:40] < 3
    judge = Judge(rows[some], some, true[some], sure)
    nothing = Bonus(np.zeros((6, 48), np.float32), np.zeros(6, np.float32))

    def worth(labels: np.ndarray, borne_out: float) -> float:
        partition = Partition(labels, centres_of(rows, labels, 6), 0.0)
        return judge.worth(Spoken(partition, nothing, np.zeros((3, 0), np.int64), borne_out))

    wanted = silhouette_score(rows[some], true[some], metric="cosine")
    assert np.isclose(worth(true, 0.25), 0.5 * wanted, atol=1e-4)
    swapped = np.where(true < 3, (true + 1) % 3, true)  # as well parted, and against the names
    assert worth(swapped, 1.0) == 0
    half = np.where(true == 0, 1, np.where(true == 1, 0, true))
    share = (half == true)[some][sure].mean()
    assert np.isclose(worth(half, 1.0), wanted * np.sqrt(share), atol=1e-4)


def test_words_speak_only_where_they_are_trusted():
    rows, _, texts = world(0, 6)
    fitted = fit(rows, texts, 6, (0, 1), FEW)
    assert fitted.trust.reliability is None
    assert fitted.words.shape == (6, 0)


def test_without_a_name_the_classes_are_found():
    rows, true, texts = world(0, 12)
    assert split_accuracy(fit(rows, texts, 12, (0, 1), FEW).labels, true, 0).all > 0.9
