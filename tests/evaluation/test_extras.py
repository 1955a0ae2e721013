"""The metrics beside split accuracy, against scikit-learn or counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from ttgcd.errors import InputError
from ttgcd.evaluation import (
    AriMetric,
    KnownMatchedToOwnMetric,
    NamedKnownAccuracyMetric,
    NmiMetric,
    NoveltyAurocMetric,
    NoveltyFlagMetric,
    ScoresMetric,
    ari,
    known_matched_to_own,
    named_known_accuracy,
    nmi,
    novelty_auroc,
    novelty_flag,
    score_stream,
    split_accuracy,
)

K = 4


@pytest.fixture(params=range(4))
def stream(request):
    rng = np.random.default_rng(request.param)
    true = rng.integers(0, 9, 400)
    predicted = np.where(rng.random(400) < 0.4, true, rng.integers(0, 11, 400))
    score = np.round((true >= K) * 0.5 + rng.random(400), 1)  # rounded: with ties
    return predicted, true, score


def test_nmi_and_ari_equal_scikit_learn(stream):
    predicted, true, _ = stream
    assert nmi(predicted, true) == pytest.approx(sk.normalized_mutual_info_score(true, predicted))
    assert ari(predicted, true) == pytest.approx(sk.adjusted_rand_score(true, predicted))


def test_degenerate_partitions():
    assert nmi([0, 0], [3, 3]) == ari([0, 0], [3, 3]) == 1.0
    assert nmi([0, 0, 0], [0, 1, 2]) == 0.0
    assert ari([0, 1, 2], [2, 0, 1]) == 1.0
    assert np.isnan(nmi([], [])) and np.isnan(ari([], []))


def test_novelty_equals_scikit_learn(stream):
    predicted, true, score = stream
    flag = novelty_flag(predicted, true, K)
    expected = sk.precision_recall_fscore_support(true >= K, predicted >= K, average="binary")
    assert (flag.precision, flag.recall, flag.f1) == pytest.approx(expected[:3])
    assert novelty_auroc(score, true, K) == pytest.approx(sk.roc_auc_score(true >= K, score))


def test_novelty_without_novel_or_known_samples_is_nan():
    assert np.isnan(novelty_auroc([0.1, 0.2], [0, 1], 2))
    assert np.isnan(novelty_auroc([0.1, 0.2], [2, 3], 2))
    flag = novelty_flag([0, 2], [0, 1], 2)  # one false alarm, nothing to find
    assert np.isnan(flag.f1) and np.isnan(flag.recall) and flag.precision == 0.0


def test_a_score_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="NaN"):
        novelty_auroc([0.1, np.nan], [0, 1], 1)


def test_names_do_not_use_the_assignment():
    predicted, true = np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 1, 2])  # names swapped
    assert split_accuracy(predicted, true, 2).known == 1.0
    assert named_known_accuracy(predicted, true, 2) == 0.0
    assert known_matched_to_own(predicted, true, 2) == 0.0


def test_share_of_known_classes_matched_to_their_own_id():
    # class 0 is found under its own id, class 1 as novel group 3; class 2 does not occur
    predicted, true = np.array([0, 0, 4, 4, 3]), np.array([0, 0, 1, 1, 3])
    assert known_matched_to_own(predicted, true, 3) == 0.5
    assert known_matched_to_own([5], [0], 1) == 0.0
    assert np.isnan(known_matched_to_own([1], [1], 1))


def test_accumulators_equal_the_functions(stream):
    predicted, true, score = stream
    pairs = [
        (NmiMetric(K), nmi(predicted, true)),
        (AriMetric(K), ari(predicted, true)),
        (NoveltyFlagMetric(K), novelty_flag(predicted, true, K)),
        (NamedKnownAccuracyMetric(K), named_known_accuracy(predicted, true, K)),
        (KnownMatchedToOwnMetric(K), known_matched_to_own(predicted, true, K)),
    ]
    auroc, everything = NoveltyAurocMetric(K), ScoresMetric(K)
    for part in np.array_split(np.arange(len(true)), 5):
        for metric, _ in pairs:
            metric.update(predicted[part], true[part])
        auroc.update(score[part], true[part])
        everything.update(predicted[part], true[part], score[part])
    for metric, expected in pairs:
        assert metric.compute() == pytest.approx(expected)
    assert auroc.compute() == pytest.approx(novelty_auroc(score, true, K))
    assert everything.compute() == score_stream(predicted, true, K, score)
    everything.update([0], [0])  # a sample without a score: no AUROC of a part of the stream
    assert np.isnan(everything.compute().novelty_auroc)
    everything.reset()
    assert everything.compute().samples == 0


def test_percent_keeps_counts_as_counts(stream):
    predicted, true, _ = stream
    scores = score_stream(predicted, true, K)
    percent = scores.as_percent()
    assert percent["all"] == 100 * split_accuracy(predicted, true, K).all
    assert percent["samples"] == 400
    assert percent["known_samples"] + percent["novel_samples"] == 400
    assert np.isnan(percent["novelty_auroc"])
