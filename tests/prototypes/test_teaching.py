"""What neighbours do after a correction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttgcd.prototypes import teaching
from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.teaching import CLAMPED_WEIGHT, follow, two_halves


def blobs(centres: np.ndarray, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(centres)), each)
    noise = 0.15 * rng.standard_normal((len(truth), centres.shape[1]))
    return normalise(centres[truth] + noise).astype(np.float32), truth


def test_a_moved_image_takes_its_look_alikes_along() -> None:
    features, truth = blobs(np.eye(8)[:3], 20)
    parts = np.where(truth == 2, 1, truth)  # blobs 1 and 2 were one group
    parts[40] = 7  # the user splits one image off
    clamped = np.zeros(60, bool)
    clamped[40] = True
    after, _ = follow(features, parts, clamped, {}, {1, 7})
    assert (after[40:] == 7).all() and (after[20:40] == 1).all() and (after[:20] == 0).all()


def test_further_samples_go_where_the_corrected_ones_went() -> None:
    features, truth = blobs(np.eye(8)[:3], 20)
    parts = np.where(truth == 2, 1, truth)
    parts[40] = 7
    clamped = np.zeros(60, bool)
    clamped[40] = True
    _, lessons = follow(features, parts, clamped, {}, {1, 7})
    assert lessons is not None
    more, label = blobs(np.eye(8)[:3], 10, seed=1)
    given = np.where(label == 2, 1, label)
    assert (lessons.answer(more, given) == np.where(label == 2, 7, label)).all()
    assert (lessons.answer(more, np.full(30, 5)) == 5).all()  # a part that was never seen stays


def test_a_merged_category_keeps_the_prototypes_of_both() -> None:
    features, truth = blobs(np.eye(8)[:3], 20)
    parts = truth.copy()
    parts[:5] = 1  # strays of the first blob
    after, _ = follow(features, parts, np.zeros(60, bool), {2: 1}, {1})
    assert (after[5:20] == 0).all()
    assert set(after[20:40]) == {1} and set(after[40:]) == {2}  # both parts live on


def test_nothing_moves_between_categories_that_nobody_corrected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(teaching, "ROUNDS", 1)  # later rounds may pass a corrected one on
    features, truth = blobs(np.eye(8)[:4], 15)
    parts = np.random.default_rng(0).permutation(truth)  # wrong everywhere
    after, _ = follow(features, parts, np.zeros(60, bool), {}, {3})
    changed = after != parts
    assert changed.any() and ((after[changed] == 3) | (parts[changed] == 3)).all()


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_clamped_samples_stay_and_no_teaching_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = normalise(rng.standard_normal((30, 5))).astype(np.float32)
    parts = rng.integers(0, 4, 30)
    clamped = rng.random(30) < 0.3
    after, _ = follow(features, parts, clamped, {}, {0, 2})
    assert (after[clamped] == parts[clamped]).all()
    same, lessons = follow(features, parts, clamped, {}, set())
    assert (same == parts).all() and lessons is None
    assert set(after) <= set(parts)


def test_one_round_is_the_nearest_weighted_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a slow reference, for one round with every category taught."""
    monkeypatch.setattr(teaching, "ROUNDS", 1)
    rng = np.random.default_rng(3)
    features = normalise(rng.standard_normal((40, 6)))
    parts = rng.integers(0, 3, 40)
    clamped = rng.random(40) < 0.2
    after, _ = follow(features, parts, clamped, {}, {0, 1, 2})
    for row in range(40):
        scores = []
        for part in range(3):
            total = np.zeros(6)
            for other in np.flatnonzero(parts == part):
                total += features[other] * (CLAMPED_WEIGHT if clamped[other] else 1)
            scores.append(features[row] @ total / np.linalg.norm(total))
        assert after[row] == (parts[row] if clamped[row] else int(np.argmax(scores)))


def test_a_group_of_two_things_falls_into_its_halves() -> None:
    features, truth = blobs(np.eye(8)[:2], 20)
    half = two_halves(features[:35])
    assert (half == (truth[:35] == 1)).all()  # the smaller one
    assert not two_halves(np.repeat(features[:1], 5, axis=0)).any()
