"""TTD- and TALON-style: categories opened as the stream goes by."""

from __future__ import annotations

import numpy as np
import pytest

from tests.methods.test_plain import blobs
from ttgcd.errors import InputError
from ttgcd.methods.base import Task
from ttgcd.methods.talon import Talon
from ttgcd.methods.ttd import Ttd
from ttgcd.testing.model import batches
from ttgcd.testing.runs import run


def known_only_first(seed: int = 0):
    """Tight blobs; the buffer holds known classes only, so its prototypes are pure."""
    data, labels, task = blobs(seed=seed)
    order = np.argsort(labels >= 3, kind="stable")
    return data[order], labels[order], task


@pytest.mark.parametrize("cls", [Talon, Ttd])
def test_blobs_that_come_later_open_their_own_categories(cls) -> None:
    data, labels, task = known_only_first()
    found = run(cls(warmup=90, threshold=0.8), task, data, size=30).category
    assert np.array_equal(found[labels < 3], labels[labels < 3])
    assert {frozenset(found[labels == novel]) for novel in (3, 4)} == {
        frozenset({3}),
        frozenset({4}),
    }


@pytest.mark.parametrize("cls", [Talon, Ttd])
def test_the_number_of_categories_is_limited_unless_open_ended(cls) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(80, 12))
    data = (data / np.linalg.norm(data, axis=1, keepdims=True)).astype(np.float32)
    _, _, task = blobs()
    limited = run(cls(warmup=20, threshold=0.95), task, data).category
    free = run(cls(warmup=20, threshold=0.95, open_ended=True), task, data).category
    assert limited.max() == 4
    assert free.max() > 20


@pytest.mark.parametrize("cls", [Talon, Ttd])
def test_the_threshold_comes_from_the_buffer(cls) -> None:
    """Pure blobs are far apart: the mixture cuts between known and novel samples."""
    data, labels, task = blobs()
    method = cls(warmup=len(data))
    found = run(method, task, data, size=50).category
    assert ((found < 3) == (labels < 3)).mean() > 0.9


def slow_talon_step(centre, rows, rate: float, smooth: float) -> np.ndarray:
    n = len(rows)
    mean = sum(rows) / n
    confidence = min(max(sum(float(v @ centre) for v in rows) / n, 0.0), 1.0)
    alpha = rate * confidence * n / (n + smooth)
    moved = (1 - alpha) * centre + alpha * mean
    return moved / np.sqrt((moved**2).sum())


def test_talon_moves_by_rate_confidence_and_count() -> None:
    data, _, task = blobs(spread=0.2)
    method = Talon(warmup=60, threshold=-1.0)
    method.start(task)
    for batch in batches(data[:90], 30)[:2]:
        method.observe(batch)
    before = method.prototypes().astype(np.float64)
    rows = method.observe(batches(data[:90], 30)[2])
    for category in range(3):
        mine = data[60:90][rows.category == category].astype(np.float64)
        assert len(mine) > 1
        expected = slow_talon_step(before[category], mine, 0.06, 32.0)
        np.testing.assert_allclose(method.prototypes()[category], expected, atol=1e-6)


def test_ttd_known_prototypes_stay_and_novel_ones_follow() -> None:
    data, _, task = known_only_first()
    method = Ttd(warmup=90, threshold=0.8)
    method.start(task)
    parts = batches(data, 30)
    for batch in parts[:3]:
        method.observe(batch)
    known = method.prototypes()[:3].copy()
    rows = method.observe(parts[3])
    assert np.array_equal(method.prototypes()[:3], known)
    mine = data[90:120][rows.category == 3].astype(np.float64)
    centre = mine[0]
    for row in mine:
        centre = 0.9 * centre + 0.1 * row
        centre /= np.sqrt((centre**2).sum())
    np.testing.assert_allclose(method.prototypes()[3], centre, atol=1e-6)


def test_ttd_memory_joins_what_hashes_alike_though_it_is_far() -> None:
    """Beyond the threshold of every prototype, but with the hash of a remembered sample."""
    _, _, task = blobs()
    rng = np.random.default_rng(1)
    buffer = np.repeat(task.anchors, 5, axis=0)
    away = rng.normal(size=12)
    away -= task.anchors.T @ np.linalg.lstsq(task.anchors.T, away, rcond=None)[0]
    away = away / np.linalg.norm(away) + 0.6 * task.anchors[0]
    away /= np.linalg.norm(away)
    near = away + 0.15 * rng.normal(size=12)
    near = (near / np.linalg.norm(near)).astype(np.float32)
    stream = np.stack([away, near]).astype(np.float32)
    assert stream[0] @ stream[1] < 0.99
    answers = {}
    for memory_bits in (1, 40):
        method = Ttd(warmup=15, threshold=0.99, bits=memory_bits)
        method.start(task)
        method.observe(batches(buffer, 15)[0])
        answers[memory_bits] = method.observe(batches(stream, 2)[0]).category.tolist()
    assert answers[1] == [3, 3]  # one bit: both fall on the same side
    assert answers[40] == [3, 4]  # forty bits tell them apart


def test_ttd_forgets_the_oldest() -> None:
    data, _, task = known_only_first()
    method = Ttd(warmup=90, threshold=0.999, memory=4)
    run(method, task, data)
    _, counts = np.unique(method.learned_arrays()["hashes"][:, 1], return_counts=True)
    assert counts.max() <= 4


def test_a_class_without_support_is_never_answered() -> None:
    data, labels, task = blobs()
    anchors = np.concatenate([task.anchors[:2], -task.anchors[:1]])
    task = Task(task.known, anchors, 2)
    found = run(Talon(warmup=60), task, data[labels < 2]).category
    assert 2 not in found


@pytest.mark.parametrize("wrong", [{"threshold": 3.0}, {"warmup": 0}])
def test_wrong_options_are_named(wrong: dict) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Talon(**wrong)
