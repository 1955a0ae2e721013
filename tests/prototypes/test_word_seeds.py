from __future__ import annotations

import numpy as np

from tests.prototypes.worlds import world
from ttgcd.evaluation import split_accuracy
from ttgcd.prototypes.calibration import Geometry, Standard
from ttgcd.prototypes.neighbourhood import nearest
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.text_evidence import Texts, confident
from ttgcd.prototypes.word_seeds import explaining, from_words


def _slowly(said: np.ndarray, explained: np.ndarray, count: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(count):
        gains = [sum(max(0.0, s - e) for s, e in zip(c, explained, strict=True)) for c in said.T]
        if max(gains) <= 0:
            break
        chosen.append(int(np.argmax(gains)))
        explained = np.maximum(explained, said[:, chosen[-1]])
    return chosen


def test_words_are_chosen_as_by_looking_at_all_of_them_each_time():
    rng = np.random.default_rng(0)
    for _ in range(5):
        said, explained = rng.normal(size=(60, 40)), rng.normal(size=60)
        assert list(explaining(said, explained, 12)) == _slowly(said, explained, 12)


def test_words_that_explain_nothing_more_are_not_chosen():
    said = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
    assert list(explaining(said, np.zeros(2), 3)) == [0, 2]
    assert len(explaining(said, np.ones(2), 3)) == 0


def _labels(rows: np.ndarray, texts: Texts, novel: int):
    mapped, logits = Geometry.of(rows)(rows), Standard.of(rows, texts.anchors)(rows)
    says = logits.argmax(axis=1)
    keep = confident(says, texts.gate(rows, logits), len(texts.anchors), 0.5)
    none = RowBonus.nothing(rows, len(texts.anchors) + novel)
    return from_words(rows, mapped, texts, says, keep, none, 0.0, np.random.default_rng(0))


def test_novel_categories_begin_at_their_own_words():
    rows, true, texts = world(6, 6)
    found = _labels(rows, texts, 6)
    assert split_accuracy(found, true, 6).all > 0.9
    calm = np.stack([rows[[i, *near]].mean(axis=0) for i, near in enumerate(_near(rows))])
    words, names = (Standard.of(calm, t)(calm) for t in (texts.words, texts.anchors))
    chosen = explaining(words, names.max(axis=1), 6)
    assert len(set(chosen) & set(range(6))) >= 5  # the first six words name the novel classes


def _near(rows: np.ndarray) -> np.ndarray:
    return nearest(Geometry.of(rows)(rows), 3)


def test_with_fewer_words_than_categories_the_others_are_spread():
    rows, true, texts = world(4, 5)
    few = Texts.of(texts.anchors, texts.words[:2], texts.scale)
    found = _labels(rows, few, 5)
    assert set(found) == set(range(9))
    assert split_accuracy(found, true, 4).all > 0.8
