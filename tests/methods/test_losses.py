"""The five objectives against slow references, and their gradients against finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.methods.adapting import Forward, Split
from ttgcd.methods.batclip import BatClip
from ttgcd.methods.losses import entropies, entropy_of_mean
from ttgcd.methods.ostta import Ostta, confidence_kept
from ttgcd.methods.sat import Sat, sinkhorn_codes
from ttgcd.methods.tent import Tent
from ttgcd.methods.unient import UniEnt

N, K, D, SCALE = 9, 4, 6, 7.0


def slow_softmax(row) -> list[float]:
    top = max(row)
    powers = [math.exp(x - top) for x in row]
    return [p / sum(powers) for p in powers]


def slow_entropy(p) -> float:
    return -sum(x * math.log(x) for x in p if x > 0)


def unit(vector) -> np.ndarray:
    return np.asarray(vector) / math.sqrt(sum(float(x) ** 2 for x in vector))


class World:
    """A float64 batch, with the slow probabilities beside it."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.raw = rng.normal(size=(N, D)) * 3
        self.before = self.raw + 0.3 * rng.normal(size=(N, D))
        self.anchors = np.stack([unit(row) for row in rng.normal(size=(K, D))])
        self.known = np.array([1, 1, 0, 1, 0, 1, 1, 0, 1], bool)
        self.posterior = np.where(self.known, 0.9, 0.2) + 0.05 * rng.normal(size=N)
        self.p = [slow_softmax([SCALE * unit(v) @ z for z in self.anchors]) for v in self.raw]
        self.p0 = [slow_softmax([SCALE * unit(v) @ z for z in self.anchors]) for v in self.before]

    def forward(self, raw: torch.Tensor | None = None) -> Forward:
        raw = torch.from_numpy(self.raw) if raw is None else raw
        return Forward.of(raw, torch.from_numpy(self.anchors), SCALE)

    def frozen(self) -> Forward:
        return self.forward(torch.from_numpy(self.before))

    def split(self) -> Split:
        return Split(torch.from_numpy(self.known), torch.from_numpy(self.posterior))

    def kept(self) -> list[bool]:
        return [p[p0.index(max(p0))] >= max(p0) for p, p0 in zip(self.p, self.p0)]

    def mean_p(self) -> list[float]:
        return [sum(p[k] for p in self.p) / N for k in range(K)]


@pytest.fixture
def world() -> World:
    return World()


def tent_reference(w: World) -> float:
    return float(np.mean([slow_entropy(p) for p, k in zip(w.p, w.known) if k]))


def batclip_reference(w: World) -> float:
    members: dict[int, list[np.ndarray]] = {}
    for p, v, known in zip(w.p, w.raw, w.known):
        if known:
            members.setdefault(p.index(max(p)), []).append(v)
    means = {c: sum(rows) / len(rows) for c, rows in members.items()}
    align = sum(float(m @ w.anchors[c]) for c, m in means.items()) / len(means)
    apart = sum(1 - float(unit(means[a]) @ unit(means[b])) for a in means for b in means if a != b)
    assert len(means) > 1, "the case must have something to separate"
    return tent_reference(w) - align - apart


def ostta_reference(w: World) -> float:
    kept = [slow_entropy(p) for p, k, ok in zip(w.p, w.known, w.kept()) if k and ok]
    novel = [slow_entropy(p) for p, k in zip(w.p, w.known) if not k]
    assert 0 < len(kept) < w.known.sum(), "the filter must matter"
    return float(np.mean(kept) - 0.1 * np.mean(novel) - 0.2 * slow_entropy(w.mean_p()))


def unient_reference(w: World) -> float:
    cap = 0.9 * math.log(K)
    entropy = [slow_entropy(p) for p in w.p]
    kept = [h for h, known, ok in zip(entropy, w.known, w.kept()) if known and ok]
    novel = [min(h, cap) for h, known in zip(entropy, w.known) if not known]
    return float(np.mean(kept) - 0.05 * np.mean(novel) - 0.1 * slow_entropy(w.mean_p()))


def soft_unient_reference(w: World) -> float:
    cap = 0.9 * math.log(K)
    entropy = [slow_entropy(p) for p in w.p]
    kept = [pi * h for pi, h, ok in zip(w.posterior, entropy, w.kept()) if ok]
    novel = [(1 - pi) * min(h, cap) for pi, h in zip(w.posterior, entropy)]
    return float(np.mean(kept) - 0.05 * np.mean(novel) - 0.1 * slow_entropy(w.mean_p()))


CASES = [
    (Tent, tent_reference),
    (BatClip, batclip_reference),
    (Ostta, ostta_reference),
    (UniEnt, unient_reference),
]


@pytest.mark.parametrize("cls,reference", CASES, ids=[c.__name__ for c, _ in CASES])
def test_loss_is_the_formula(cls, reference, world: World) -> None:
    found = cls().loss(world.forward(), world.split(), world.frozen())
    assert found.item() == pytest.approx(reference(world), rel=1e-10)


@pytest.mark.parametrize("cls", [c for c, _ in CASES])
def test_gradient_is_the_finite_difference(cls, world: World) -> None:
    method, split, frozen = cls(), world.split(), world.frozen()
    raw = torch.from_numpy(world.raw).requires_grad_(True)
    assert torch.autograd.gradcheck(
        lambda rows: method.loss(world.forward(rows), split, frozen), (raw,)
    )


def test_soft_unient_weighs_every_sample_by_its_posterior(world: World) -> None:
    found = UniEnt(partition="soft").loss(world.forward(), world.split(), world.frozen())
    assert found.item() == pytest.approx(soft_unient_reference(world), rel=1e-10)
    with pytest.raises(InputError, match="partition"):
        UniEnt(partition="other")


def test_hard_unient_drops_the_novel_term_when_all_are_known(world: World) -> None:
    everybody = Split(torch.ones(N, dtype=torch.bool), torch.ones(N))
    kept = [slow_entropy(p) for p, ok in zip(world.p, world.kept()) if ok]
    expected = float(np.mean(kept) - 0.1 * slow_entropy(world.mean_p()))
    found = UniEnt().loss(world.forward(), everybody, world.frozen())
    assert found.item() == pytest.approx(expected, rel=1e-10)


def test_batclip_sends_a_gradient_to_the_anchors(world: World) -> None:
    anchors = torch.from_numpy(world.anchors).requires_grad_(True)
    raw = torch.from_numpy(world.raw)
    assert torch.autograd.gradcheck(
        lambda rows: BatClip().loss(Forward.of(raw, rows, SCALE), world.split(), None), (anchors,)
    )


def test_batclip_with_one_class_has_nothing_to_separate(world: World) -> None:
    alone = Split(torch.arange(N) == 1, torch.ones(N))
    p, v = world.p[1], world.raw[1]
    expected = slow_entropy(p) - float(v @ world.anchors[p.index(max(p))])
    found = BatClip().loss(world.forward(), alone, None)
    assert found.item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("cls", [c for c, _ in CASES])
def test_without_known_samples_there_is_no_loss(cls, world: World) -> None:
    nobody = Split(torch.zeros(N, dtype=torch.bool), torch.zeros(N))
    assert cls().loss(world.forward(), nobody, world.frozen()) is None


def test_ostta_drops_the_first_term_when_no_known_sample_passes(world: World) -> None:
    method = Ostta()
    failing = torch.tensor([not ok for ok in world.kept()])
    assert failing.any()
    split = Split(failing, torch.ones(N))
    novel = [slow_entropy(p) for p, bad in zip(world.p, failing) if not bad]
    expected = -0.1 * np.mean(novel) - 0.2 * slow_entropy(world.mean_p())
    found = method.loss(world.forward(), split, world.frozen())
    assert found.item() == pytest.approx(float(expected), rel=1e-10)


def test_the_unchanged_model_keeps_every_sample(world: World) -> None:
    assert confidence_kept(world.forward(), world.forward()).all()


def test_the_clamp_stops_the_pull_on_nearly_uniform_samples() -> None:
    anchors = torch.eye(3, dtype=torch.float64)
    raw = torch.ones((2, 3), dtype=torch.float64) + torch.tensor([[0.0, 1e-3, 0.0]])
    raw.requires_grad_(True)
    forward = Forward.of(raw, anchors, 1.0)
    # The first is known so that the batch is not left out; the second is the one that is looked at.
    split = Split(torch.tensor([True, False]), torch.tensor([1.0, 0.0], dtype=torch.float64))
    for partition in ("hard", "soft"):
        for clamp, pulls in ((0.9, False), (1.0, True)):
            method = UniEnt(alpha_div=0.0, clamp=clamp, partition=partition)
            loss = method.loss(forward, split, forward)
            (gradient,) = torch.autograd.grad(loss, raw, retain_graph=True)
            assert bool(gradient[1].abs().max() > 0) == pulls


def test_entropies_survive_certainty() -> None:
    """p log p of an underflowing probability: finite value, finite gradient."""
    logits = torch.tensor([[0.0, 4000.0], [0.0, 4000.0]], requires_grad=True)
    total = entropies(logits).sum() + entropy_of_mean(logits)
    total.backward()
    assert total.item() == 0.0
    assert torch.isfinite(logits.grad).all()


def slow_sinkhorn(scores: np.ndarray, epsilon: float, iterations: int) -> np.ndarray:
    n, k = scores.shape
    q = [[math.exp(scores[i][j] / epsilon) for i in range(n)] for j in range(k)]  # K x B

    def columns(total: float) -> None:
        for i in range(n):
            size = sum(q[j][i] for j in range(k))
            for j in range(k):
                q[j][i] *= total / size

    columns(1.0)
    for _ in range(iterations):
        for j in range(k):
            size = sum(q[j])
            q[j] = [x / size / k for x in q[j]]
        columns(1.0 / n)
    columns(1.0)
    return np.array(q).T


@pytest.mark.parametrize("iterations", [0, 1, 3, 5])
def test_sinkhorn_is_the_slow_loop(iterations: int) -> None:
    scores = np.random.default_rng(4).normal(size=(7, 3)) * 4
    found = sinkhorn_codes(torch.from_numpy(scores), 0.7, iterations).numpy()
    np.testing.assert_allclose(found, slow_sinkhorn(scores, 0.7, iterations), rtol=1e-9)


def test_sinkhorn_spreads_samples_over_the_classes() -> None:
    """Everything looks like class 0: the codes share it out all the same."""
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 3)))
    scores[:, 0] += 5
    codes = sinkhorn_codes(scores, 0.7, 100)
    np.testing.assert_allclose(codes.sum(dim=0).numpy(), [20, 20, 20], rtol=1e-3)
    np.testing.assert_allclose(codes.sum(dim=1).numpy(), np.ones(60))


def test_sinkhorn_survives_large_scores_where_exponentials_overflow() -> None:
    scores = torch.tensor([[3000.0, 0.0], [0.0, 3000.0], [3000.0, 2999.0]])
    codes = sinkhorn_codes(scores, 0.7, 3)
    assert torch.isfinite(codes).all()


def test_sat_distillation_is_the_formula_and_its_codes_are_labels(world: World) -> None:
    method = Sat(temperature=0.2)
    rng = np.random.default_rng(8)
    template = np.stack([unit(row) for row in rng.normal(size=(K, D))])
    rows = np.stack([unit(v) for v in world.raw])
    codes = slow_sinkhorn(rows @ template.T / 0.2, 0.7, 3)
    predicted = [slow_softmax(row) for row in rows @ world.anchors.T / 0.2]
    expected = -np.mean([sum(c * np.log(p)) for c, p in zip(codes, predicted)])
    features = torch.from_numpy(rows).requires_grad_(True)
    head = torch.from_numpy(world.anchors)
    found = method.distillation(features, torch.from_numpy(template), head)
    assert found.item() == pytest.approx(expected, rel=1e-9)
    # With the codes held fixed the gradient is (p - q) z / tau / n.
    (gradient,) = torch.autograd.grad(found, features)
    by_hand = (np.array(predicted) - codes) @ world.anchors / 0.2 / N
    np.testing.assert_allclose(gradient.numpy(), by_hand, rtol=1e-7, atol=1e-12)
