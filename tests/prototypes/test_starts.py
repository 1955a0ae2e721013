from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tests.prototypes.worlds import world
from ttgcd.evaluation import split_accuracy
from ttgcd.prototypes import starts as module
from ttgcd.prototypes.calibration import Geometry
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.starts import Sample, known_first, starts
from ttgcd.prototypes.text_evidence import Texts


def _sample(rows: np.ndarray, texts: Texts, count: int, member: np.ndarray | None = None) -> Sample:
    none = RowBonus.nothing(rows, count)
    return Sample.of(rows, Geometry.of(rows)(rows), none, 0.0, texts, member)


@pytest.mark.parametrize("known", [0, 1, 4])
def test_every_start_parts_the_classes_and_known_ones_come_first(known):
    rows, true, texts = world(known, 8 - known, noise=0.8)
    found = list(starts(_sample(rows, texts, 8), texts, 4, known > 0, np.random.default_rng(0)))
    assert len(found) == (4 if known else 3)
    for labels in found:
        assert labels.shape == (len(rows),)
        assert 0 <= labels.min() <= labels.max() < 8
        assert split_accuracy(labels, true, known).all > 0.85
        if known:
            assert (labels == true)[true < known].mean() > 0.85


def test_words_are_asked_only_where_they_may_and_trees_grow_only_over_so_many(monkeypatch):
    rows, _, texts = world(3, 3)
    sample = _sample(rows, texts, 6)
    assert len(list(starts(sample, texts, 1, False, np.random.default_rng(0)))) == 3
    monkeypatch.setattr(module, "MOST_IN_A_TREE", len(rows) - 1)
    assert len(list(starts(sample, texts, 1, False, np.random.default_rng(0)))) == 1


def test_with_more_categories_than_the_graph_is_asked_for_diffusion_takes_its_place(monkeypatch):
    rows, true, texts = world(4, 4, noise=0.8)
    monkeypatch.setattr(module, "MOST_IN_A_GRAPH", 7)
    labels = next(starts(_sample(rows, texts, 8), texts, 4, False, np.random.default_rng(0)))
    assert split_accuracy(labels, true, 4).all > 0.85


def test_clusters_are_numbered_as_the_best_of_all_numberings():
    rng = np.random.default_rng(0)
    for _ in range(5):
        labels, known = rng.integers(4, size=40), rng.integers(2, size=40)
        sure = rng.random(40) < 0.5

        def gain(order, labels=labels, known=known, sure=sure):
            total = 0.0
            for cluster in range(4):
                mine = sure & (labels == cluster)
                if mine.any():
                    total += (known[mine] == order[cluster]).sum() / np.sqrt(mine.sum())
            return total

        found = known_first(labels, known, sure, 4)
        order = [int(found[labels == cluster][0]) for cluster in range(4)]
        assert sorted(order) == [0, 1, 2, 3]
        assert gain(order) == pytest.approx(max(gain(o) for o in permutations(range(4))))


def test_members_are_sure_of_their_class_and_nobody_else_is():
    rows, true, texts = world(4, 2)
    member = np.where(true == 3, 3, -1)
    member[np.flatnonzero(true == 3)[::2]] = -1
    sample = _sample(rows, texts, 6, member)
    assert (sample.known[member == 3] == 3).all()
    assert sample.sure[member == 3].all()
    assert not sample.sure[(sample.known == 3) & (member < 0)].any()
    assert sample.sure[sample.known < 3].any()


def test_half_of_a_names_samples_are_sure_and_fewer_where_most_are_novel():
    rows, true, texts = world(2, 8)
    sample = _sample(rows, texts, 10)
    for name in (0, 1):
        mine = sample.known == name
        assert sample.sure[mine].sum() == np.ceil(0.2 * mine.sum())
        assert (true[sample.sure & mine] == name).mean() > 0.9


def test_more_categories_than_rows_leave_novel_ones_their_share():
    rows, _, texts = world(40, 8, each=1)
    labels = list(starts(_sample(rows, texts, 48), texts, 2, False, np.random.default_rng(0)))
    assert len(labels) == 1
    assert len(set(labels[0][labels[0] >= 40])) >= 4
