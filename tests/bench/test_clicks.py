"""The simulated user."""

from __future__ import annotations

import numpy as np

from tests.prototypes.test_teaching import blobs
from ttgcd.bench.clicks import after_clicks


def test_one_click_heals_a_torn_class_and_another_a_lumped_one() -> None:
    features, truth = blobs(np.eye(16)[:6], 20)
    answers = truth.copy()
    answers[(truth == 3) & (np.arange(120) % 2 == 0)] = 7  # torn in two
    answers[truth == 5] = 4  # lumped with another
    found = after_clicks(features, answers, truth, n_known=3, clicks=(0, 1, 2, 5))
    assert found[0] < found[1] < found[2] == found[5] == 1.0


def test_teaching_puts_more_right_than_the_edits_alone() -> None:
    features, truth = blobs(np.eye(16)[:6], 20)
    answers = np.where(truth >= 4, 3, truth)  # three classes in one group
    taught = after_clicks(features, answers, truth, n_known=3, clicks=(2,))
    alone = after_clicks(features, answers, truth, n_known=3, clicks=(2,), teach=False)
    assert taught[2] == 1.0 and alone[2] < 0.8


def test_a_right_answer_needs_no_click() -> None:
    features, truth = blobs(np.eye(16)[:4], 10)
    assert after_clicks(features, truth, truth, 2, clicks=(0, 3)) == {0: 1.0, 3: 1.0}
