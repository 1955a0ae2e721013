"""The confidence of answers."""

from __future__ import annotations

import numpy as np
import pytest

from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.confidence import (
    KNOWN_SIGNS,
    NOVEL_SIGNS,
    Confidence,
    StreamFacts,
    shipped,
)

K, L, DIM = 6, 4, 24


def stream(
    noise: float, seed: int = 0, each: int = 40
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0][: K + L]
    truth = rng.permutation(np.repeat(np.arange(K + L), each))
    features = normalise(centres[truth] + noise * rng.standard_normal((len(truth), DIM)) / 5)
    return features.astype(np.float32), truth, centres[:K].astype(np.float32)


def confidence(features: np.ndarray, answers: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    return Confidence.of_stream(features, answers, anchors)(features, answers)


def test_the_shipped_weights_fit_the_signs() -> None:
    for method in ("scout", "any other"):
        known, novel = shipped(method)
        assert len(known.weights) == len(KNOWN_SIGNS) and len(novel.weights) == len(NOVEL_SIGNS)
    assert shipped("scout")[0].bias != shipped("any other")[0].bias


def test_right_answers_get_more_confidence_than_wrong_ones() -> None:
    features, truth, anchors = stream(0.6)
    rng = np.random.default_rng(1)
    wrong = rng.random(len(truth)) < 0.2
    answers = np.where(wrong, (truth + rng.integers(1, K + L, len(truth))) % (K + L), truth)
    sure = confidence(features, answers, anchors)
    off = np.where(answers < K, answers != truth, truth < K)
    assert sure.min() >= 0 and sure.max() <= 1
    assert sure[~off].mean() > sure[off].mean() + 0.3


def test_confidence_falls_with_the_noise_of_the_stream() -> None:
    means = []
    for noise in (0.3, 1.5):
        features, _, anchors = stream(noise)
        answers = (features @ anchors.T).argmax(axis=1)
        means.append(confidence(features, answers, anchors).mean())
    assert means[0] > means[1]


def test_a_long_stream_is_answered_in_blocks_like_a_short_one() -> None:
    features, truth, anchors = stream(0.6)
    judge = Confidence.of_stream(features, truth, anchors)
    whole = judge(features, truth)
    parts = [judge(features[at : at + 64], truth[at : at + 64]) for at in range(0, len(truth), 64)]
    assert len(parts) == 7 and np.allclose(np.concatenate(parts), whole, atol=1e-6)


def test_one_known_class_and_a_lonely_sample_give_a_number() -> None:
    features, truth, anchors = stream(0.6)
    answers = np.where(truth == 0, 0, 1)
    answers[5] = 7  # a category of its own
    sure = confidence(features, answers, anchors[:1])
    assert np.isfinite(sure).all()


def test_the_gap_is_measured_without_the_sample_itself() -> None:
    """A slow reference: a sample must not make its own category look near."""
    features, truth, anchors = stream(0.8, each=4)
    facts = StreamFacts(features, truth, anchors)
    known, as_known, _ = facts.signs(features, truth)
    row = int(np.flatnonzero(known)[0])
    others = [i for i in range(len(truth)) if truth[i] == truth[row] and i != row]
    own = features[row] @ normalise(features[others].mean(axis=0))
    rivals = [
        features[row] @ normalise(features[truth == c].mean(axis=0))
        for c in range(K + L)
        if c != truth[row]
    ]
    assert as_known[row, 3] * facts.gap_scale == pytest.approx(own - max(rivals), abs=1e-4)
