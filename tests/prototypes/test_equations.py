"""The prototype equations against slow loops that follow the paper word by word."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ttgcd.prototypes.bank import PrototypeBank
from ttgcd.prototypes.seeding import best_novel, refine_novel, seed_novel, squared_distances
from ttgcd.prototypes.text_labels import pseudo_labels, zero_shot_probabilities


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    rows = rng.normal(size=shape)
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def length(vector: list[float]) -> float:
    return math.sqrt(sum(x * x for x in vector))


def slow_normalise(vector: list[float]) -> list[float]:
    size = length(vector)
    return [x / size for x in vector]


def slow_dot(a: np.ndarray, b: np.ndarray) -> float:
    return sum(float(x) * float(y) for x, y in zip(a, b))


@pytest.fixture
def world() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        "features": unit(rng, 40, 12),
        "anchors": unit(rng, 5, 12),
        "known": unit(rng, 5, 12),
        "novel": unit(rng, 3, 12),
    }


def test_eq1_is_a_softmax_of_scaled_cosines(world) -> None:
    found = zero_shot_probabilities(world["features"], world["anchors"], 100.0)
    for row, feature in zip(found, world["features"]):
        logits = [100.0 * slow_dot(feature, anchor) for anchor in world["anchors"]]
        top = max(logits)
        powers = [math.exp(x - top) for x in logits]
        np.testing.assert_allclose(row, [x / sum(powers) for x in powers], atol=1e-5)


def test_eq2_margin_is_best_minus_second(world) -> None:
    probabilities = zero_shot_probabilities(world["features"], world["anchors"], 20.0)
    labels, margins = pseudo_labels(probabilities)
    for row, label, margin in zip(probabilities, labels, margins):
        ranked = sorted(row, reverse=True)
        assert row[label] == ranked[0]
        assert margin == pytest.approx(ranked[0] - ranked[1], abs=1e-5)
        assert 0 <= margin <= 1


def test_eq2_single_class_has_full_margin(world) -> None:
    probabilities = zero_shot_probabilities(world["features"], world["anchors"][:1], 100.0)
    labels, margins = pseudo_labels(probabilities)
    assert (labels == 0).all() and (margins == 1).all()


def test_eq5_known_prototypes_and_evidence(world) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 40)  # class 4 gets nothing
    margins = rng.random(40)
    bank = PrototypeBank.from_buffer(world["features"], labels, margins, 5, evidence_min=1.5)
    for k in range(4):
        total, evidence = [0.0] * 12, 0.0
        for feature, label, margin in zip(world["features"], labels, margins):
            if label == k:
                total = [t + margin * float(x) for t, x in zip(total, feature)]
                evidence += margin
        np.testing.assert_allclose(bank.known[k], slow_normalise(total), atol=1e-5)
        assert bank.evidence[k] == pytest.approx(evidence, abs=1e-5)
        assert bank.active[k] == (evidence >= 1.5)
    assert not bank.known[4].any() and bank.evidence[4] == 0 and not bank.active[4]


def test_active_set_boundary_is_inclusive(world) -> None:
    bank = PrototypeBank(world["known"], np.array([1.5, 1.4999, 2, 0, 9]), world["novel"], 1.5)
    assert bank.active.tolist() == [True, False, True, False, True]


def test_eq7_squared_distance_to_the_nearest_centre(world) -> None:
    centres = np.concatenate([world["known"], world["novel"]])
    found = squared_distances(world["features"], centres)
    for value, feature in zip(found, world["features"]):
        slow = min(
            sum((float(x) - float(y)) ** 2 for x, y in zip(feature, centre)) for centre in centres
        )
        assert value == pytest.approx(slow, abs=1e-5)


def test_eq6_seeds_are_drawn_in_proportion_to_d2_given_all_centres_so_far(world) -> None:
    features, centres = world["features"], world["known"]
    seeds = seed_novel(features, centres, 4, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    have = [list(map(float, c)) for c in centres]
    expected = []
    for _ in range(4):
        distances = []
        for n, feature in enumerate(features):
            nearest = max(slow_dot(feature, np.array(c)) for c in have)
            distances.append(0.0 if n in expected else max(0.0, 2 * (1 - nearest)))
        total = sum(distances)
        draw = int(rng.choice(len(features), p=[d / total for d in distances]))
        expected.append(draw)
        have.append(list(map(float, features[draw])))
    assert seeds.tolist() == expected


def test_seed_frequencies_follow_d2(world) -> None:
    features, centres = world["features"][:6], world["known"]
    wanted = squared_distances(features, centres)
    rng = np.random.default_rng(0)
    draws = [int(seed_novel(features, centres, 1, rng)[0]) for _ in range(6000)]
    seen = np.bincount(draws, minlength=6) / 6000
    np.testing.assert_allclose(seen, wanted / wanted.sum(), atol=0.03)


def test_first_seed_is_uniform_without_centres(world) -> None:
    rng = np.random.default_rng(0)
    none = np.zeros((0, 12), np.float32)
    draws = [int(seed_novel(world["features"][:4], none, 1, rng)[0]) for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(draws, minlength=4) / 4000, 0.25, atol=0.03)


def test_seeds_are_never_duplicated_and_a_shortage_is_said(world) -> None:
    features = np.repeat(world["features"][:2], 5, axis=0)
    with pytest.warns(UserWarning, match="only 2 of 6"):
        seeds = seed_novel(features, features[:0], 6, np.random.default_rng(0))
    assert len({tuple(features[s]) for s in seeds}) == 2


def test_greedy_seeding_keeps_the_candidate_that_covers_most(world) -> None:
    features, centres = world["features"], world["known"]
    seeds = seed_novel(features, centres, 1, np.random.default_rng(5), candidates=4)
    base = squared_distances(features, centres)
    draws = np.random.default_rng(5).choice(len(features), size=4, p=base / base.sum())
    left = [np.minimum(base, squared_distances(features, features[d][None])).sum() for d in draws]
    assert seeds[0] == draws[int(np.argmin(left))]


def test_eq8_and_eq9_nearest_prototype_among_active_known_and_novel(world) -> None:
    bank = PrototypeBank(world["known"], np.array([9, 0, 9, 1, 9.0]), world["novel"], 1.5)
    for feature, found in zip(
        world["features"], bank.similarities(world["features"]).argmax(axis=1)
    ):
        best, best_value = None, -math.inf
        for k in (0, 2, 4):
            if slow_dot(feature, world["known"][k]) > best_value:
                best, best_value = k, slow_dot(feature, world["known"][k])
        for j in range(3):
            if slow_dot(feature, world["novel"][j]) > best_value:
                best, best_value = 5 + j, slow_dot(feature, world["novel"][j])
        assert found == best


def test_ties_go_to_the_lowest_index(world) -> None:
    bank = PrototypeBank(world["known"], np.full(5, 9.0), world["known"][:2].copy(), 1.5)
    assert bank.similarities(world["known"][:2]).argmax(axis=1).tolist() == [0, 1]


@pytest.mark.parametrize(("eta", "lam"), [(0.05, 0.10), (0.6, 1.0)])
def test_eq10_eq11_eq12_updates(world, eta: float, lam: float) -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 4, 40)  # class 4 is unsupported
    margins = rng.random(40)
    categories = rng.integers(0, 7, 40)  # novel 2 (id 7) is unsupported
    before = PrototypeBank(world["known"], np.arange(5.0), world["novel"], 1.5)
    bank = PrototypeBank(world["known"].copy(), np.arange(5.0), world["novel"].copy(), 1.5)
    bank.update(world["features"], labels, margins, categories, eta, lam)
    for k in range(5):
        total, gained = [0.0] * 12, 0.0
        for feature, label, margin in zip(world["features"], labels, margins):
            if label == k:
                total = [t + margin * float(x) for t, x in zip(total, feature)]
                gained += margin
        if gained == 0:
            np.testing.assert_array_equal(bank.known[k], before.known[k])
        else:
            mean = slow_normalise(total)
            mixed = [(1 - eta) * float(m) + eta * x for m, x in zip(before.known[k], mean)]
            np.testing.assert_allclose(bank.known[k], slow_normalise(mixed), atol=1e-5)
        assert bank.evidence[k] == pytest.approx(k + gained, abs=1e-5)
    for j in range(3):
        members = world["features"][categories == 5 + j]
        if len(members) == 0:
            np.testing.assert_array_equal(bank.novel[j], before.novel[j])
            continue
        mean = slow_normalise([sum(float(row[i]) for row in members) for i in range(12)])
        mixed = [(1 - lam) * float(v) + lam * x for v, x in zip(before.novel[j], mean)]
        np.testing.assert_allclose(bank.novel[j], slow_normalise(mixed), atol=1e-5)


def test_a_class_without_prototype_starts_at_its_first_mean_direction(world) -> None:
    known = world["known"].copy()
    known[3] = 0
    bank = PrototypeBank(known, np.zeros(5), world["novel"], 1.5)
    mine = world["features"][:2]
    bank.update(mine, np.array([3, 3]), np.array([0.5, 1.5]), np.array([5, 5]), 0.05, 0.1)
    expected = 0.5 * mine[0] + 1.5 * mine[1]
    np.testing.assert_allclose(bank.known[3], expected / np.linalg.norm(expected), atol=1e-5)
    assert bank.active[3]


def test_zero_weights_change_nothing(world) -> None:
    bank = PrototypeBank(world["known"].copy(), np.zeros(5), world["novel"].copy(), 1.5)
    bank.update(world["features"], np.zeros(40, int), np.zeros(40), np.zeros(40, int), 0.05, 0.1)
    np.testing.assert_array_equal(bank.known, world["known"])
    np.testing.assert_array_equal(bank.novel, world["novel"])
    assert np.isfinite(bank.known).all()


def test_refinement_holds_known_prototypes_and_lowers_the_distance(world) -> None:
    features, known = world["features"], world["known"]
    novel = features[:3]
    refined = refine_novel(features, known, novel, 5)
    before = squared_distances(features, np.concatenate([known, novel])).sum()
    after = squared_distances(features, np.concatenate([known, refined])).sum()
    assert after < before
    np.testing.assert_allclose(np.linalg.norm(refined, axis=1), 1, atol=1e-5)


def test_one_try_is_the_papers_draw_and_of_many_the_least_distance_wins(world) -> None:
    features, known = world["features"], world["known"]
    once = best_novel(features, known, 3, np.random.default_rng(5))
    seeds = seed_novel(features, known, 3, np.random.default_rng(5))
    np.testing.assert_array_equal(once, features[seeds])

    rng, tries = np.random.default_rng(5), []
    for _ in range(4):
        drawn = seed_novel(features, known, 3, rng, candidates=2)
        tries.append(refine_novel(features, known, features[drawn], 2))
    totals = [
        sum(2 * (1 - max(slow_dot(v, c) for c in [*known, *novel])) for v in features)
        for novel in tries
    ]
    assert max(totals) - min(totals) > 1e-3
    found = best_novel(features, known, 3, np.random.default_rng(5), 2, 2, restarts=4)
    np.testing.assert_array_equal(found, tries[int(np.argmin(totals))])
