"""What thousands of categories are treated to, on few: thresholds lowered, results compared."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.optimize import linear_sum_assignment

from tests.prototypes.worlds import world
from ttgcd.discovery import CategoryDiscovery
from ttgcd.prototypes import census, many, neighbourhood
from ttgcd.prototypes.calibration import Standard, unit
from ttgcd.prototypes.cells import nearest_in_cells
from ttgcd.prototypes.census import take_census
from ttgcd.prototypes.lineage import Lineage, _certain, _matched
from ttgcd.prototypes.many import spread_in_batches
from ttgcd.prototypes.neighbourhood import nearest
from ttgcd.prototypes.partition import Partition, centres_of, lloyd
from ttgcd.prototypes.reservoir import Reservoir
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.scout_stream import Schedule, Scout
from ttgcd.prototypes.structure import structure
from ttgcd.prototypes.text_evidence import Texts, best_words, known_bonus, word_bonus
from ttgcd.report.signs import read_signs


def _blobs(classes: int, each: int, d: int = 48, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    means = unit(rng.normal(size=(classes, d)))
    true = rng.permutation(np.repeat(np.arange(classes), each))
    return unit(means[true] + 0.7 * unit(rng.normal(size=(len(true), d)))), true


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 31 categories on it is many; small blocks; neighbours are looked for in cells."""
    for name, value in (("MANY", 30), ("WHOLE", 2**12), ("BLOCK", 2**10)):
        monkeypatch.setattr(many, name, value)
    monkeypatch.setattr(neighbourhood, "EXACT", 500)


def _right(labels: np.ndarray, true: np.ndarray, known: int) -> float:
    shared = np.zeros((labels.max() + 1, true.max() + 1))
    np.add.at(shared, (labels, true), 1)
    novel = shared[known:, known:]
    right = shared.diagonal()[:known].sum() + novel[linear_sum_assignment(-novel)].sum()
    return float(right) / len(true)


@pytest.mark.parametrize("known", [0, 10])
def test_many_categories_are_told_apart_as_well_as_few(known, request):
    rows, true = _blobs(100, 15)
    names = unit(centres_of(rows, true, 100)[:known] + 0.01) if known else None
    options = {"options": {"restarts": 2, "fresh_restarts": 1}}
    usual = CategoryDiscovery(names, 100 - known, **options).fit_predict(rows)
    request.getfixturevalue("few_are_many")
    short = CategoryDiscovery(names, 100 - known, **options).fit_predict(rows)
    assert _right(usual, true, known) > 0.97
    assert _right(short, true, known) > 0.97


def test_what_texts_add_is_the_same_by_block(few_are_many, monkeypatch):
    rows, true, texts = world(20, 20)
    names, words = Standard.of(rows, texts.anchors), Standard.of(rows, texts.words)
    known = known_bonus(names, 0.1, 20)
    chosen = best_words(words, centres_of(rows, true, 40)[20:])
    spoken = word_bonus(known, words, chosen, rows, 0.1)
    blocked = [RowBonus.of(rows, bonus) for bonus in (known, spoken)]
    assert all(added.whole is None for added in blocked)
    assert (known.spoken, spoken.spoken) == (20, 40)
    for name in ("MANY", "WHOLE"):
        monkeypatch.setattr(many, name, 2**30)
    again = word_bonus(known, words, chosen, rows, 0.1)
    assert np.allclose(again.direction, spoken.direction, atol=1e-4)
    for part, whole in zip(blocked, (RowBonus.of(rows, b) for b in (known, spoken)), strict=True):
        some, half = np.arange(0, len(rows), 3), slice(5, 50)
        scores = np.zeros((2, 45, 40), np.float32)
        part.add_to(scores[0], half)
        whole.add_to(scores[1], half)
        assert np.allclose(*scores, atol=1e-5)
        assert np.allclose(part.first(20), whole.first(20), atol=1e-5)
        assert np.allclose(part.of_labels(true), whole.of_labels(true), atol=1e-5)
        assert np.array_equal(part.at(some).agrees(true[some]), whole.at(some).agrees(true[some]))


def _clustered(rows: np.ndarray, count: int) -> Partition:
    return lloyd(rows, rows[:count], RowBonus.nothing(rows, count), 0, 0.0)


def test_clusters_in_blocks_are_those_of_the_whole(few_are_many, monkeypatch):
    rows, _ = _blobs(25, 20)  # few enough to go on until nothing moves
    short = _clustered(rows, 25)
    monkeypatch.setattr(many, "WHOLE", 2**30)
    usual = _clustered(rows, 25)
    assert np.array_equal(short.labels, usual.labels)
    assert short.value == pytest.approx(usual.value)


def test_clustering_never_holds_an_array_of_rows_by_categories(monkeypatch):
    rows, _ = _blobs(1500, 4, 16)
    monkeypatch.setattr(many, "WHOLE", 2**16)
    monkeypatch.setattr(many, "BLOCK", 2**16)
    tracemalloc.start()
    _clustered(rows, 1500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 1500 * 4 / 4  # a quarter of one such array


def test_seeds_in_batches_find_nearly_every_class():
    rows, true = _blobs(400, 8)
    chosen = spread_in_batches(rows, np.full(len(rows), -1.0), 400, np.random.default_rng(0))
    assert len(chosen) == 400
    assert len(set(true[chosen])) > 0.9 * 400


def test_more_seeds_than_rows_are_drawn_all_the_same():
    rows, _ = _blobs(3, 2)
    assert len(spread_in_batches(rows, np.zeros(6), 40, np.random.default_rng(0))) == 40


def test_neighbours_from_cells_are_neighbours():
    rows, true = _blobs(300, 10)
    found, exact = nearest_in_cells(rows, 5), nearest(rows, 5)
    assert (found != np.arange(len(rows))[:, None]).all()
    assert (true[found] == true[:, None]).mean() > 0.8
    cosine = np.einsum("nd,nkd->nk", rows, rows[found])
    assert (np.diff(cosine, axis=1) <= 1e-6).all()
    assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found, exact, strict=True)]) > 0.7


def test_pairs_that_are_certain_leave_the_matching_as_good_as_it_was(few_are_many):
    rng = np.random.default_rng(0)
    certain = 0
    for _ in range(20):
        old, new = rng.integers(0, 40, (2, 300))
        new = np.where(rng.random(300) < 0.6, old, new)
        shared = sparse.csc_matrix((np.ones(300), (new, old)), shape=(40, 40))
        dense = shared.toarray()
        best = dense[linear_sum_assignment(-dense)].sum()
        pairs = _matched(shared)
        certain += len(_certain(shared))
        assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
        assert sum(dense[one, other] for one, other in pairs) == best
    assert certain > 100


def test_categories_keep_their_ids_where_there_are_many(few_are_many):
    lineage = Lineage(2)
    labels = np.repeat(np.arange(60), 5)
    lineage.follow(None, labels, 60, 300)
    turned = np.concatenate([[0, 1], 2 + np.random.default_rng(0).permutation(58)])
    before = lineage.ids.copy()
    events = lineage.follow(labels, turned[labels], 60, 400)
    assert not events
    assert np.array_equal(lineage.ids[turned], before)


def test_neighbours_of_a_sample_do_not_deny_more_groups_than_it_can_hold():
    rows, true = _blobs(1500, 4)
    assert structure(rows) < 0.2  # though they are as clear as can be
    assert read_signs(true, None, rows, rows[:0]).structure is None
    assert read_signs(true % 900, None, rows, rows[:0]).structure is not None


def test_a_reservoir_that_grew_is_uniform_again_when_the_stream_has_grown_as_much():
    rows = np.arange(4000, dtype=np.float32)[:, None]
    grown, large = Reservoir(100, 7), Reservoir(400, 7)
    for part in np.split(rows, 40):
        if grown.seen == 1000:
            grown.grow(400)
        grown.add(part)
        large.add(part)
    assert np.array_equal(grown.index, large.index)


def test_many_are_counted_by_region(monkeypatch):
    rows, _ = _blobs(150, 16)
    texts = Texts.of(np.zeros((0, 48), np.float32), None, 100.0)
    for name, value in (("SAMPLES", 500), ("REGION_ROWS", 400)):
        monkeypatch.setattr(census, name, value)
    found = take_census(rows, texts, np.random.default_rng(0))
    assert 0.75 * 150 < found.total < 1.35 * 150  # 500 rows hold 83 of six members at most
    monkeypatch.setattr(census, "TOO_MANY", 9.0)
    assert take_census(rows, texts, np.random.default_rng(0)).total < 90


def test_room_for_what_was_counted_is_kept_in_the_state(few_are_many):
    rows, _ = _blobs(50, 20)
    texts = Texts.of(np.zeros((0, 48), np.float32), None, 100.0)
    schedule = Schedule(warmup=300, reservoir=300)
    first = Scout(texts, None, 0, schedule)
    first.learn(rows)
    assert first.reservoir.capacity > 600
    second = Scout(texts, None, 0, schedule)
    second.load(first.arrays(), first.values())
    assert second.reservoir.capacity == first.reservoir.capacity
    told = Scout(texts, 50, 0, schedule)
    assert told.reservoir.capacity == 1000
