from __future__ import annotations

import numpy as np
import pytest

from tests.prototypes.worlds import world
from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.neighbourhood import AVERAGED, Neighbourhood, among_near, nearest

ROWS = unit(np.random.default_rng(0).normal(size=(60, 7)))


def _slowly(rows: np.ndarray, count: int) -> list[list[int]]:
    out = []
    for i, row in enumerate(rows):
        others = sorted((-float(row @ other), j) for j, other in enumerate(rows) if j != i)
        out.append([j for _, j in others[:count]])
    return out


@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_nearest_are_those_of_a_look_at_all_pairs(count):
    assert nearest(ROWS, count).tolist() == _slowly(ROWS, count)


def test_few_rows_have_few_neighbours_and_one_has_none():
    assert nearest(ROWS[:5], 10).shape == (5, 2)
    assert nearest(ROWS[:1], 10).shape == (1, 0)
    assert nearest(ROWS[:0], 10).shape == (0, 0)
    assert np.array_equal(among_near(ROWS[:1]), ROWS[:1])
    alone = Neighbourhood.of(ROWS[:1])
    assert np.array_equal(alone.calm(ROWS[:1]), ROWS[:1])


def test_a_row_among_its_near_ones_is_their_mean():
    near = _slowly(ROWS, AVERAGED - 1)
    means = [ROWS[[i, *near[i]]].mean(axis=0) for i in range(len(ROWS))]
    assert np.allclose(among_near(ROWS), unit(np.array(means)), atol=1e-6)


def _dense(rows: np.ndarray, count: int) -> np.ndarray:
    links = np.zeros((len(rows), len(rows)))
    for i, near in enumerate(_slowly(rows, count)):
        for j in near:
            links[i, j] = links[j, i] = 1
    return links


def test_calm_and_diffused_are_what_the_dense_graph_gives():
    graph, links = Neighbourhood.of(ROWS, 4), _dense(ROWS, 4)
    assert np.array_equal(graph.links.toarray(), links)
    degree = links.sum(axis=1)
    assert np.allclose(graph.calm(ROWS), 0.5 * (ROWS + links @ ROWS / degree[:, None]), atol=1e-6)
    steps = links / np.sqrt(np.outer(degree, degree))
    assert np.allclose(graph.diffused(ROWS), unit(steps @ steps @ ROWS), atol=1e-5)


@pytest.mark.parametrize("each", [20, 60])  # by a whole decomposition, and by iterations
def test_directions_span_the_leading_eigenvectors(each):
    rows, true, _ = world(3, 3, each=each, noise=0.4)
    links = _dense(rows, 10)
    degree = links.sum(axis=1)
    values, vectors = np.linalg.eigh(links / np.sqrt(np.outer(degree, degree)))
    assert values[-6] - values[-7] > 0.05  # six classes: what follows is apart
    wanted = unit(vectors[:, -6:])
    found = Neighbourhood.of(rows).directions(6)
    # Eigenvectors of equal values may be turned: products of rows are the same however they are.
    assert np.allclose(found @ found.T, wanted @ wanted.T, atol=0.02)
    same = true[:, None] == true[None]
    assert (found @ found.T)[same].mean() > 0.9 > 0.3 > (found @ found.T)[~same].mean()
