from __future__ import annotations

import json
from itertools import pairwise

import numpy as np

from tests.prototypes.worlds import world
from ttgcd.evaluation import split_accuracy
from ttgcd.prototypes import scout_stream
from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.census import take_census
from ttgcd.prototypes.refit import Restarts
from ttgcd.prototypes.scout_stream import Schedule, Scout
from ttgcd.prototypes.text_evidence import Texts

SCHEDULE = Schedule(warmup=120, reservoir=300, restarts=Restarts(2, 1))


def _streamed(scout: Scout, rows: np.ndarray, batch: int = 20) -> list:
    events = []
    for start in range(0, len(rows), batch):
        events += scout.learn(rows[start : start + batch])
    return events


def _ids(scout: Scout, rows: np.ndarray) -> np.ndarray:
    return scout.lineage.ids[scout.scores(rows).argmax(axis=1)]


def test_a_stream_is_sorted_with_the_number_of_novel_classes_given_and_unknown():
    rows, true, texts = world(6, 6, each=60)
    for novel in (6, None):
        scout = Scout(texts, novel, 0, SCHEDULE)
        _streamed(scout, rows)
        scout.refit(True, last=True)
        assert split_accuracy(_ids(scout, rows), true, 6).all > 0.85
        assert abs(scout.lineage.novel - 6) <= 2


def test_no_novel_category_is_found_where_there_is_none():
    rows, _, texts = world(8, 0, each=60)
    scout = Scout(texts, None, 0, SCHEDULE)
    _streamed(scout, rows)
    assert scout.lineage.novel <= 1


def test_an_interrupted_stream_goes_on_exactly_from_any_point():
    rows, _, texts = world(5, 4, each=60)
    whole = Scout(texts, None, 3, SCHEDULE)
    _streamed(whole, rows)
    for stop in (60, 140, 400):
        first, second = Scout(texts, None, 3, SCHEDULE), Scout(texts, None, 3, SCHEDULE)
        _streamed(first, rows[:stop])
        second.load(first.arrays(), json.loads(json.dumps(first.values())))
        _streamed(second, rows[stop:])
        assert np.array_equal(second.scores(rows), whole.scores(rows))
        assert second.values() == whole.values()


def test_refits_fade_with_the_logarithm_of_the_stream():
    rows, _, texts = world(3, 2, each=400)
    scout = Scout(texts, 2, 0, SCHEDULE)
    fits = set()
    for start in range(0, len(rows), 20):
        scout.learn(rows[start : start + 20])
        fits.add(scout.last_fit)
    assert len(fits - {0}) <= 1 + np.log(len(rows) / 120) / np.log(SCHEDULE.growth)
    assert len(scout.reservoir.rows) == 300


def test_novel_categories_are_counted_when_the_stream_has_doubled_and_at_its_end(monkeypatch):
    rows, _, texts = world(3, 2, each=200)
    counted = []

    def census(*args: object) -> object:
        counted.append(scout.seen)
        return take_census(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(scout_stream, "take_census", census)
    scout = Scout(texts, None, 0, SCHEDULE)
    _streamed(scout, rows)
    scout.refit(True, last=True)
    assert not scout.changes
    assert counted[0] == 120 and counted[-1] == len(rows)
    assert all(b >= 2 * a for a, b in pairwise(counted[:-1]))
    assert len(scout.moved) > len(counted)


def test_a_class_that_appears_late_gets_a_category_of_its_own():
    rows, true, texts = world(5, 4, each=80)
    early, late = true != 8, true == 8
    order = np.concatenate([np.flatnonzero(early), np.flatnonzero(late)])
    mixed = np.random.default_rng(0).permutation(order[300:])
    order = np.concatenate([order[:300], mixed])
    scout = Scout(texts, None, 0, SCHEDULE)
    _streamed(scout, rows[order])
    scout.refit(True, last=True)
    found = _ids(scout, rows[late])
    own = np.bincount(found).argmax()
    assert own >= 5 and (found == own).mean() > 0.7
    assert (_ids(scout, rows[early]) == own).mean() < 0.05


def test_most_of_the_reservoir_keeps_its_category_at_a_refit():
    rows, _, texts = world(6, 6, each=60)
    scout = Scout(texts, 6, 0, SCHEDULE)
    _streamed(scout, rows)
    assert scout.moved and max(scout.moved) <= 0.08


def test_names_that_mean_nothing_make_the_count_unjudged():
    rows, _, texts = world(8, 6, each=60)
    other = world(8, 6, each=1, seed=5)[2]
    scout = Scout(other, None, 0, SCHEDULE)
    _streamed(scout, rows)
    assert not scout.judged
    scout = Scout(texts, None, 0, SCHEDULE)
    _streamed(scout, rows)
    assert scout.judged


def test_a_change_of_style_is_noticed_and_followed_by_an_early_refit():
    rows, true, texts = world(6, 6, each=150)
    half = len(rows) // 2
    drifted = rows.copy()
    style = unit(np.random.default_rng(2).normal(size=(1, rows.shape[1])))
    drifted[half:] = unit(rows[half:] + 0.5 * style)
    calm, moved = Scout(texts, 6, 0, SCHEDULE), Scout(texts, 6, 0, SCHEDULE)
    _streamed(calm, rows)
    _streamed(moved, drifted)
    assert not calm.changes
    assert len(moved.changes) >= 1 and half < moved.changes[0] <= half + 600
    moved.refit(True, last=True)
    assert split_accuracy(_ids(moved, drifted), true, 6).all > 0.8


def _named_world(
    seed: int = 0, noise: float = 1.6
) -> tuple[np.ndarray, np.ndarray, Texts, np.ndarray]:
    """Two of the novel classes look alike; texts tell them apart. The last are their names."""
    rows, true, texts = world(6, 6, each=80, noise=noise, seed=seed)
    return rows, true, Texts.of(texts.anchors, None, texts.scale), texts.words[:6]


def test_a_named_category_is_known_by_its_name_from_then_on():
    gains = [_gain_by_names(seed) for seed in range(4)]
    assert np.min(gains) > 0, gains


def _gain_by_names(seed: int) -> float:
    """How much larger the part of the second half is that finds home when names were given."""
    rows, true, texts, names = _named_world(seed, noise=2.0)
    half = len(rows) // 2
    shares = []
    for promoted in (False, True):
        scout = Scout(texts, 6, 0, SCHEDULE)
        _streamed(scout, rows[:half])
        scout.refit(True, last=True)
        found = _ids(scout, rows[:half])
        home = {c: int(np.bincount(true[:half][found == c]).argmax()) for c in set(found.tolist())}
        named = {c: names[label - 6] for c, label in home.items() if c >= 6 and label >= 6}
        before = _ids(scout, rows)
        if promoted:
            scout.promote(named)
            assert scout.lineage.named == len(named) and scout.lineage.novel == 6 - len(named)
            assert (_ids(scout, rows) == before).mean() > 0.8  # ids mean what they meant
        _streamed(scout, rows[half:])
        scout.refit(True, last=True)
        after = _ids(scout, rows[half:])
        shares.append(np.mean([home.get(c) == t for c, t in zip(after, true[half:])]))
    return float(shares[1] - shares[0])


def test_names_are_part_of_the_state_and_can_be_taken_back():
    rows, true, texts, names = _named_world(1)
    scout = Scout(texts, None, 0, SCHEDULE)
    _streamed(scout, rows[:300])
    ids = sorted(scout.lineage.ids.tolist())
    novel = ids[6:]
    found = _ids(scout, rows)
    label = int(np.bincount(true[found == novel[-1]]).argmax())
    own = texts.anchors[label] if label < 6 else names[label - 6]
    scout.promote({novel[-1]: own, 999: names[1]})  # what is no living category is left out
    assert scout.lineage.named == 1 and scout.lineage.ids[6] == novel[-1]
    again = Scout(scout.texts, None, 0, SCHEDULE)
    again.load(scout.arrays(), json.loads(json.dumps(scout.values())))
    _streamed(scout, rows[300:])
    _streamed(again, rows[300:])
    assert np.array_equal(scout.scores(rows), again.scores(rows))
    assert scout.lineage.ids[6] == novel[-1]  # whatever the refits did
    scout.promote({})
    assert scout.lineage.named == 0 and len(scout.texts.anchors) == 6
