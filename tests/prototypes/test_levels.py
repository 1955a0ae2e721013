"""The tree of levels, against slow and obvious ways to make it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttgcd.prototypes.levels import FIRST_MERGED_ID, Tree, finer, ward
from ttgcd.prototypes.parts import (
    CLEARLY,
    LEAST,
    Looks,
    Parts,
    find_parts,
    halves,
    nearest_parts,
    part_id,
)


def slow_ward(rows: np.ndarray, groups: list[list[int]]) -> list[tuple[set[int], float]]:
    """What is joined one after the other, and by how much the squared distances to centres rise:
    every pair is tried at every step, from the rows themselves."""

    def spread(members: list[int]) -> float:
        return float(((rows[members] - rows[members].mean(axis=0)) ** 2).sum())

    groups, said = [list(g) for g in groups], []
    while len(groups) > 1:
        costs = {
            (a, b): spread(groups[a] + groups[b]) - spread(groups[a]) - spread(groups[b])
            for a in range(len(groups))
            for b in range(a)
        }
        a, b = min(costs, key=lambda pair: costs[pair])
        joined = groups[a] + groups[b]
        said.append((set(joined), costs[a, b]))
        groups = [g for at, g in enumerate(groups) if at not in (a, b)] + [joined]
    return said


@pytest.mark.parametrize("seed", range(5))
def test_ward_over_groups_is_ward_over_their_members(seed: int) -> None:
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.repeat(np.arange(9), rng.integers(1, 12, 9)))
    rows = rng.normal(size=(len(owner), 5)) + rng.normal(size=(9, 5))[owner]
    groups = [np.flatnonzero(owner == g).tolist() for g in range(9)]
    made = ward(np.stack([rows[g].mean(axis=0) for g in groups]), np.bincount(owner))
    members: list[set[int]] = [set(g) for g in groups]
    slow = slow_ward(rows, groups)
    for (a, b), height, (joined, cost) in zip(made.pairs, made.heights, slow, strict=True):
        members.append(members[a] | members[b])
        assert members[-1] == joined
        assert height == pytest.approx(cost, rel=1e-3)


def test_equal_centres_and_lone_groups_end_too() -> None:
    assert len(ward(np.zeros((40, 3)), np.ones(40)).pairs) == 39
    assert len(ward(np.zeros((1, 3)), np.ones(1)).pairs) == 0
    assert len(ward(np.zeros((0, 3)), np.ones(0)).pairs) == 0


@st.composite
def forests(draw: st.DrawFn) -> Tree:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    category = np.repeat(rng.permutation(100)[: len(sizes)], sizes)
    n = len(category)
    return Tree.of(rng.normal(size=(n, 3)), rng.integers(1, 50, n), category)


@settings(max_examples=60, deadline=None)
@given(tree=forests())
def test_levels_are_partitions_nested_in_each_other_and_in_the_categories(tree: Tree) -> None:
    finest = tree.finest
    for k in range(1, finest + 1):
        groups = tree.cut(k)
        assert len(set(groups.tolist())) == k
        if k > 1:  # every group of the finer level is inside one of the coarser
            coarser = tree.cut(k - 1)
            assert len({*zip(groups.tolist(), coarser.tolist(), strict=True)}) == k
    found = tree.cut(tree.found)
    pairs = {*zip(found.tolist(), tree.category.tolist(), strict=True)}
    assert len(pairs) == tree.found == len(set(tree.category.tolist()))
    ids = tree.ids(part_id(tree.category, np.arange(finest)))
    assert len(set(ids.tolist())) == 2 * finest - 1  # no two groups share an id
    assert ids[found].tolist() == tree.category.tolist()  # a category keeps its own
    assert tree.coarse() <= tree.found


def test_ids_of_merged_groups_stay_when_other_categories_change() -> None:
    centres = np.array([[0.0], [1], [10], [11.5], [40], [43]])
    ids = {}
    for name, kept in (("all", [0, 1, 2, 3, 4, 5]), ("fewer", [0, 1, 2, 3])):
        tree = Tree.of(centres[kept], np.ones(len(kept)), np.array(kept))
        ids[name] = tree.ids(part_id(np.array(kept)))[tree.cut(2 if name == "fewer" else 3)]
    assert ids["fewer"].tolist() == ids["all"][:4].tolist()
    assert ids["fewer"].tolist() == [FIRST_MERGED_ID + 1] * 2 + [FIRST_MERGED_ID + 3] * 2


def test_the_coarse_level_is_the_nearest_lower_hill_or_where_merging_gets_dear() -> None:
    # Twelve categories in four far clumps of three.
    centres = np.array([[100.0 * clump + at, at**2] for clump in range(4) for at in (0, 1, 2.5)])
    tree = Tree.of(centres, np.ones(12), np.arange(12))
    assert tree.coarse() == 4
    assert tree.coarse([2, 6, 11, 40]) == 6  # 11 is 12, near enough
    assert finer(12, [2, 6, 13, 40, 90]) == 40
    assert finer(12, [2, 12]) is None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_categories_stay_as_they_are(count: int) -> None:
    tree = Tree.of(np.eye(count), np.ones(count), np.arange(count))
    assert tree.coarse() == count


def test_a_tree_refuses_numbers_it_does_not_have() -> None:
    tree = Tree.of(np.eye(3), np.ones(3), np.arange(3))
    for number in (0, 4):
        with pytest.raises(ValueError, match="3 leaves"):
            tree.cut(number)


# -- parts ----------------------------------------------------------------------------------------


def clouds(count: int, each: int, seed: int, apart: float = 1.0, d: int = 64) -> np.ndarray:
    """``count`` clouds of ``each`` rows in a few directions, one after the other."""
    rng = np.random.default_rng(seed)
    scale = np.exp(-np.arange(d) / 15)
    centres = apart * rng.normal(size=(count, d))
    return np.concatenate([c + 2 * rng.normal(size=(each, d)) * scale for c in centres])


def test_a_cloud_is_left_whole_and_two_are_halved() -> None:
    split = [halves(clouds(1, 60, seed))[1] >= CLEARLY for seed in range(40)]
    assert sum(split) <= 2
    for seed in range(20):
        half, clear = halves(clouds(2, 30, seed))
        assert clear >= CLEARLY
        assert half[:30].all() != half[30:].all() and half.sum() == 30


def test_few_or_equal_rows_are_not_halved() -> None:
    assert halves(clouds(2, LEAST - 1, 0))[1] == -np.inf
    assert halves(np.ones((50, 8)))[1] == -np.inf


@pytest.mark.parametrize("most", [None, 4])
def test_parts_are_of_their_category_and_the_clearest_splits_are_kept(most: int | None) -> None:
    rows = np.concatenate(
        [clouds(1, 50, 1), clouds(3, 40, 2), 30 + clouds(2, 40, 3, apart=6.0)]
    ).astype(np.float32)
    category = np.repeat([0, 7, 9], [50, 120, 80])
    order = np.random.default_rng(0).permutation(len(rows))
    rows, category = rows[order], category[order]
    found = find_parts(lambda places: rows[places], category, np.array([0, 7, 9]), most)
    counts = [int((found.category == c).sum()) for c in (0, 7, 9)]
    assert counts == [1, 3, 2] if most is None else sum(counts) <= 4
    assert counts[2] == 2
    again = find_parts(lambda places: rows[places], category, np.array([0, 7, 9]), most)
    assert again.ids.tolist() == found.ids.tolist()
    assert again.centres.tobytes() == found.centres.tobytes()
    assert (np.diff(found.ids) > 0).all()
    place = nearest_parts(found, rows, category)
    slow = [
        min(
            np.flatnonzero(found.category == c),
            key=lambda p: float(((rows[i] - found.centres[p]) ** 2).sum()),
        )
        for i, c in enumerate(category)
    ]
    assert place.tolist() == slow


def test_rows_of_a_category_without_parts_have_none() -> None:
    parts = Parts.whole(np.array([3]), np.zeros((1, 2), np.float32))
    assert nearest_parts(parts, np.ones((2, 2), np.float32), np.array([3, 5])).tolist() == [0, -1]


def test_looks_leave_out_what_all_have_in_common() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 6)) + 5
    looks = Looks.of(rows)(rows)
    assert np.allclose(np.linalg.norm(looks, axis=1), 1)
    assert np.abs(looks.mean(axis=0)).max() < 0.3
    assert not Looks.of(np.ones((4, 3)))(np.ones((4, 3))).any()
