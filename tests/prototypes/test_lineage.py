from __future__ import annotations

import numpy as np

from ttgcd.prototypes.lineage import Birth, End, Lineage


def _started(n_known: int = 2, novel: int = 2) -> Lineage:
    lineage = Lineage(n_known)
    lineage.follow(None, np.arange(n_known + novel), n_known + novel, 10)
    return lineage


def test_novel_ids_follow_the_known_ones_in_order_of_birth():
    lineage = Lineage(2)
    events = lineage.follow(None, np.array([0, 1, 2, 3]), 4, 10)
    assert lineage.ids.tolist() == [0, 1, 2, 3]
    assert events == [Birth(2, 10), Birth(3, 10)]


def test_columns_that_come_in_another_order_keep_their_ids():
    lineage = _started()
    old = np.array([0, 1, 2, 2, 3, 3])
    new = np.array([0, 1, 3, 3, 2, 2])
    assert lineage.follow(old, new, 4, 20) == []
    assert lineage.ids[new].tolist() == old.tolist()


def test_known_columns_never_move_even_if_their_samples_do():
    lineage = _started()
    lineage.follow(np.array([0, 0, 1, 1, 2, 3]), np.array([1, 1, 0, 0, 2, 3]), 4, 20)
    assert lineage.ids[:2].tolist() == [0, 1]


def test_a_new_column_is_born_with_an_id_that_was_never_given():
    lineage = _started()
    events = lineage.follow(np.array([2, 2, 3, 3]), np.array([2, 4, 3, 3]), 5, 20)
    assert events == [Birth(4, 20)]
    assert lineage.born_at == {2: 10, 3: 10, 4: 20}


def test_a_column_whose_members_went_to_one_other_is_merged_and_its_id_is_an_alias():
    lineage = _started()
    events = lineage.follow(np.array([2, 2, 2, 3, 3]), np.array([2, 2, 2, 2, 2]), 3, 20)
    assert events == [End(3, 2, 20)]
    assert lineage.alias(3) == 2
    assert lineage.alias(2) == 2


def test_a_column_whose_members_scattered_is_retired():
    lineage = _started(n_known=2, novel=1)
    events = lineage.follow(np.array([2, 2, 0, 1]), np.array([0, 1, 0, 1]), 2, 20)
    assert events == [End(2, None, 20)]
    assert lineage.alias(2) == 2


def test_ids_are_not_given_twice():
    lineage = _started(n_known=1, novel=1)
    lineage.follow(np.array([0, 1]), np.array([0, 0]), 1, 20)
    lineage.follow(np.array([0, 0]), np.array([0, 1]), 2, 30)
    assert lineage.ids.tolist() == [0, 2]


def test_an_alias_leads_through_several_merges():
    lineage = _started(n_known=1, novel=3)
    lineage.follow(np.array([1, 2, 2, 3, 3, 3]), np.array([1, 1, 1, 2, 2, 2]), 3, 20)
    first = lineage.alias(1)
    lineage.follow(np.array([1, 1, 2, 2, 2]), np.array([1, 1, 1, 1, 1]), 2, 30)
    assert lineage.alias(1) == lineage.alias(first) == 3
