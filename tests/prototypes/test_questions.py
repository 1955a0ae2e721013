"""What a user is asked next."""

from __future__ import annotations

import numpy as np

from tests.prototypes.test_teaching import blobs
from ttgcd.prototypes.questions import next_questions


def test_two_halves_of_one_thing_are_asked_about_first() -> None:
    features, truth = blobs(np.eye(12)[:5], 20)
    torn = np.where((truth == 4) & (np.arange(100) % 2 == 0), 9, truth)
    first = next_questions(features, torn, novel=[3, 4, 9])[0]
    assert first.ask == "same" and set(first.categories) == {4, 9}


def test_a_group_of_two_things_looks_mixed() -> None:
    features, truth = blobs(np.eye(12)[:6], 20)
    lumped = np.where(truth == 5, 4, truth)
    asked = next_questions(features, lumped, novel=[3, 4])
    assert asked[0].ask == "mixed" and asked[0].categories == (4,)
    assert asked[0].gain > 15  # nearly all of the smaller half hangs on it


def test_an_image_between_two_centres_is_on_a_border_until_it_is_settled() -> None:
    features, truth = blobs(np.eye(12)[:3], 20)
    between = (np.eye(12)[0] + np.eye(12)[1]) / np.sqrt(2)
    features = np.concatenate([features, between[None].astype(np.float32)])
    truth = np.append(truth, 0)
    asked = [q for q in next_questions(features, truth, novel=[2], top=50) if q.ask == "border"]
    assert asked[0].row == 60 and set(asked[0].categories) == {0, 1}
    settled = np.arange(61) == 60
    again = next_questions(features, truth, novel=[2], top=50, settled=settled)
    assert all(question.row != 60 for question in again)


def test_known_classes_are_never_asked_to_be_the_same() -> None:
    features, truth = blobs(np.eye(12)[:4], 20)
    torn = np.where((truth == 3) & (np.arange(80) % 2 == 0), 9, truth)
    assert all(q.ask != "same" for q in next_questions(features, torn, novel=[]))


def test_one_category_leaves_nothing_to_ask() -> None:
    features, truth = blobs(np.eye(12)[:1], 20)
    assert next_questions(features, truth, novel=[0]) == []
