"""Reliability and expected calibration error."""

from __future__ import annotations

import numpy as np
import pytest

from ttgcd.errors import InputError
from ttgcd.evaluation.calibration import answers_right, expected_calibration_error, reliability


def test_a_true_probability_has_hardly_any_error() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    assert expected_calibration_error(p, rng.random(50_000) < p) < 0.01
    assert expected_calibration_error(np.sqrt(p), rng.random(50_000) < p) > 0.1


def test_against_a_slow_reference() -> None:
    rng = np.random.default_rng(1)
    p, right = rng.random(500), rng.random(500) < 0.6
    total = 0.0
    for number in range(15):
        inside = [i for i in range(500) if number / 15 <= p[i] < (number + 1) / 15]
        if inside:
            total += abs(sum(p[inside]) - sum(right[inside]))
    assert expected_calibration_error(p, right) == pytest.approx(total / 500)


def test_the_extremes_have_their_bins_and_nonsense_is_refused() -> None:
    assert [b.count for b in reliability([0.0, 1.0], [0, 1], bins=4)] == [1, 1]
    with pytest.raises(InputError, match="between 0 and 1"):
        reliability([1.2], [1])
    with pytest.raises(InputError, match="one each"):
        reliability([0.2, 0.3], [1])


def test_a_novel_answer_is_right_for_any_novel_sample() -> None:
    assert answers_right([0, 1, 5, 6], [0, 0, 7, 1], n_known=2).tolist() == [
        True,
        False,
        True,
        False,
    ]
