"""SimGCD++ and HiLo++: their losses, their prototypes, their views."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.methods.base import Task
from ttgcd.methods.hilo import HiLo
from ttgcd.methods.simgcd import SimGcd, distillation, info_nce
from ttgcd.methods.views import random_view
from ttgcd.prototypes.bank import normalise
from ttgcd.prototypes.clusters import kmeans
from ttgcd.prototypes.mixture import known_mask
from ttgcd.testing.checks import images
from ttgcd.testing.model import TinyVLM, batches
from ttgcd.testing.model import embedding_world as embeddings
from ttgcd.testing.runs import run, task_for

N, D = 8, 6


def slow_softmax(row) -> np.ndarray:
    powers = np.array([math.exp(x - max(row)) for x in row])
    return powers / powers.sum()


def slow_entropy(p) -> float:
    return -sum(float(x) * math.log(x) for x in p if x > 0)


def begun(method, bank_rows: int = 5, dtype=torch.float64):
    """A method set in the middle of a stream with a random float64 bank."""
    rng = np.random.default_rng(2)
    anchors = normalise(rng.normal(size=(3, D))).astype(np.float32)
    method.start(Task(("a", "b", "c"), anchors, bank_rows - 3))
    method._set_bank(normalise(rng.normal(size=(bank_rows, D))).astype(np.float32))
    method.bank = torch.nn.Parameter(method.bank.detach().to(dtype))
    features = normalise(rng.normal(size=(N, D)))
    known = torch.tensor([True, False, True, True, False, False, True, False])
    return features, known


def as_batch(features: np.ndarray):
    return batches(features, len(features))[0]


def test_hilo_loss_is_the_formula() -> None:
    method = HiLo()
    features, known = begun(method)
    bank = method.bank.detach().numpy()
    p = [slow_softmax([float(v @ c) / 0.1 for c in bank]) for v in features]
    labels = [int(np.argmax(method.task.anchors @ v)) for v in features]
    right = [-math.log(p[i][labels[i]]) for i in range(N) if known[i]]
    expected = 0.5 * np.mean([slow_entropy(row) for row in p]) + np.mean(right)
    found = method.loss(as_batch(features), known, warming=False)
    assert found.item() == pytest.approx(expected, rel=1e-6)


def test_hilo_gradient_is_the_finite_difference() -> None:
    method = HiLo()
    features, known = begun(method)

    def loss(bank: torch.Tensor) -> torch.Tensor:
        method.bank = bank
        return method.loss(as_batch(features), known, warming=False)

    assert torch.autograd.gradcheck(loss, (method.bank.detach().requires_grad_(True),))


def shaken(method: SimGcd) -> None:
    """Heads away from the identity, in float64, student and teacher different."""
    torch.manual_seed(4)
    for head in (method.head, method.teacher_head):
        for parameter in head.parameters():
            parameter.data = parameter.data + 0.3 * torch.randn_like(parameter)
    method.head, method.teacher_head = method.head.double(), method.teacher_head.double()


@pytest.mark.parametrize("warming,cool", [(True, 0.07), (False, 0.04)])
def test_simgcd_loss_is_the_formula(warming: bool, cool: float) -> None:
    """On embeddings both views are the feature itself."""
    method = SimGcd(hidden=7)
    features, known = begun(method)
    shaken(method)
    teacher = normalise(np.random.default_rng(3).normal(size=(5, D)))
    method.teacher = torch.from_numpy(teacher)
    bank = method.bank.detach().numpy()
    with torch.no_grad():
        projected = method.head(torch.from_numpy(features)).numpy()
        taught = method.teacher_head(torch.from_numpy(features)).numpy()
    p = [slow_softmax([float(v @ c) / 0.1 for c in bank]) for v in projected]
    q = [slow_softmax([float(v @ c) / cool for c in teacher]) for v in taught]
    cross = -np.mean([float((b * np.log(a)).sum()) for a, b in zip(p, q)])
    both = np.concatenate([projected, projected])
    contrast = 0.0
    for i in range(2 * N):
        total = sum(math.exp(float(both[i] @ both[j])) for j in range(2 * N) if j != i)
        contrast -= math.log(math.exp(float(both[i] @ both[(i + N) % (2 * N)])) / total)
    labels = [int(np.argmax(method.task.anchors @ v)) for v in features]
    right = np.mean([-math.log(p[i][labels[i]]) for i in range(N) if known[i]])
    diversity = slow_entropy(np.mean(p, axis=0))
    expected = 0.5 * cross + 1.5 * (contrast / (2 * N) + right) - 0.01 * diversity
    found = method.loss(as_batch(features), known, warming)
    assert found.item() == pytest.approx(expected, rel=1e-6)


def test_simgcd_gradient_is_the_finite_difference_and_spares_the_known_rows() -> None:
    method = SimGcd(hidden=4)
    features, known = begun(method)
    shaken(method)
    method.teacher = method.bank.detach().clone()
    first = method.head.added[0].weight.detach().clone().requires_grad_(True)
    anchors, novel = method.bank.detach()[:3], method.bank.detach()[3:].requires_grad_(True)
    method.head.added[0]._parameters.pop("weight")

    def loss(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        method.bank = torch.cat([anchors, rows])
        method.head.added[0].weight = weight
        return method.loss(as_batch(features), known, warming=False)

    del method.bank
    assert torch.autograd.gradcheck(loss, (novel, first))
    whole = torch.cat([anchors, novel.detach()]).requires_grad_(True)
    method.bank = whole
    (gradient,) = torch.autograd.grad(method.loss(as_batch(features), known, warming=False), whole)
    assert not gradient[:3].any() and gradient[3:].any()


def test_simgcd_known_rows_stay_at_the_anchors() -> None:
    method, task = SimGcd(warmup=48, hidden=8), task_for(None)
    run(method, task, embeddings())
    np.testing.assert_allclose(method.prototypes()[: task.n_known], task.anchors, atol=1e-5)


def test_simgcd_answers_through_its_head() -> None:
    """An untrained head is the identity; one that mirrors the features turns the answers round."""
    method = SimGcd(hidden=8)
    features, _ = begun(method, dtype=torch.float32)
    features = features.astype(np.float32)
    bank = method.bank.detach().numpy()
    assert (method.answer(0, features).category == (features @ bank.T).argmax(axis=1)).all()
    method.head.forward = lambda rows: -rows
    assert (method.answer(0, features).category == (features @ bank.T).argmin(axis=1)).all()


def test_distillation_crosses_the_views() -> None:
    rng = np.random.default_rng(0)
    s = [torch.from_numpy(rng.normal(size=(4, 3))) for _ in range(2)]
    t = [torch.from_numpy(rng.normal(size=(4, 3))) for _ in range(2)]
    total = 0.0
    for student, teacher in ((s[0], t[1]), (s[1], t[0])):
        for row in range(4):
            p, q = slow_softmax(student[row] / 0.1), slow_softmax(teacher[row] / 0.04)
            total -= float((q * np.log(p)).sum()) / 4
    found = distillation((s[0], s[1]), (t[0], t[1]), 0.1, 0.04)
    assert found.item() == pytest.approx(total / 2, rel=1e-9)


def test_contrast_is_least_for_equal_views_that_differ_among_samples() -> None:
    apart = torch.eye(4, dtype=torch.float64)
    assert info_nce(apart, apart, 0.1) < info_nce(apart, apart.roll(1, 0), 0.1)
    # A single sample has only its partner to pick.
    assert info_nce(apart[:1], apart[:1], 1.0).item() == 0.0


@pytest.mark.parametrize("cls", [HiLo, SimGcd])
def test_the_bank_begins_at_anchors_and_kmeans_of_the_novel(cls) -> None:
    small = {"hidden": 8} if cls is SimGcd else {}
    method = cls(warmup=48, lr=0.0, **small)
    task = task_for(None)
    data = embeddings()
    run(method, task, data)
    flags = np.concatenate(
        [
            known_mask((data[i : i + 16] @ task.anchors.T).max(axis=1), task.seed)
            for i in (0, 16, 32)
        ]
    )
    centres = normalise(kmeans(data[:48][~flags], 2, task.seed).centres)
    np.testing.assert_allclose(method.prototypes()[:3], task.anchors, atol=1e-6)
    np.testing.assert_allclose(method.prototypes()[3:], centres, atol=1e-6)


@pytest.mark.parametrize("cls", [HiLo, SimGcd])
def test_rows_stay_on_the_sphere_and_move(cls) -> None:
    small = {"hidden": 8} if cls is SimGcd else {}
    still, method = cls(warmup=48, lr=0.0, **small), cls(warmup=48, **small)
    run(still, task_for(None), embeddings())
    run(method, task_for(None), embeddings())
    lengths = np.linalg.norm(method.prototypes(), axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-5)
    assert not np.allclose(method.prototypes(), still.prototypes(), atol=1e-3)


def test_the_teacher_follows_slowly() -> None:
    task, data = task_for(None), embeddings()
    distances = []
    for ema in (0.0, 0.99):
        method = SimGcd(warmup=32, hidden=8, ema=ema)
        run(method, task, data)
        heads = zip(method.teacher_head.parameters(), method.head.parameters())
        head = max(float((old - new).detach().abs().max()) for old, new in heads)
        distances.append((float((method.teacher - method.bank.detach()).abs().max()), head))
    assert max(distances[0]) < 1e-6
    assert min(distances[1]) > 1e-4


def test_views_are_seeded_crops_of_the_same_image() -> None:
    data = images(6)
    one = random_view(data, np.random.default_rng(1))
    assert one.dtype == torch.uint8
    assert one.shape == data.shape
    assert torch.equal(one, random_view(data, np.random.default_rng(1)))
    assert not torch.equal(one, random_view(data, np.random.default_rng(2)))
    # The whole image, not mirrored or mirrored, is a view as well: nothing else is done to it.
    whole = random_view(data, np.random.default_rng(1), crop=1.0)
    for view, image in zip(whole, data):
        assert torch.equal(view, image) or torch.equal(view, image.flip(2))
    assert any(torch.equal(view, image.flip(2)) for view, image in zip(whole, data))


def test_a_crop_stays_inside_the_image() -> None:
    """A gradient from 0 to 255: a crop of 7/8 keeps the order and most of the range."""
    ramp = torch.arange(256).to(torch.uint8).expand(1, 3, 256, 256).contiguous()
    for seed in range(8):
        row = random_view(ramp, np.random.default_rng(seed))[0, 0, 100].int()
        steps = row[1:] - row[:-1]
        assert (steps >= 0).all() or (steps <= 0).all()
        assert 220 <= row.max() - row.min() <= 225


def test_simgcd_uses_views_of_images() -> None:
    """The same stream as images and as their embeddings: only the former has views."""
    vlm = TinyVLM()
    data = images()
    method = SimGcd(warmup=32, hidden=8)
    run(method, task_for(vlm), data)
    with_views = method.prototypes()
    run(method, task_for(vlm), vlm.encode_images(data).numpy())
    assert not np.allclose(with_views, method.prototypes(), atol=1e-5)


def test_defaults_and_wrong_options() -> None:
    sim, hilo = SimGcd(), HiLo()
    assert (sim.lr, sim.ema, sim.w_cons, sim.w_contr, sim.w_div) == (1e-2, 0.999, 0.5, 1.5, 0.01)
    assert (hilo.lr, hilo.temperature, hilo.w_sem) == (1e-2, 0.1, 0.5)
    for wrong in ({"warmup": 0}, {"temperature": 0.0}, {"ema": 2.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            SimGcd(**wrong)


@pytest.mark.parametrize("cls", [HiLo, SimGcd])
def test_what_is_trained_lies_on_the_encoders_device(cls) -> None:
    """The meta device stands for a GPU: it says where a tensor would be."""
    vlm = TinyVLM()
    vlm.device = torch.device("meta")
    method = cls(**({"hidden": 8} if cls is SimGcd else {}))
    anchors = normalise(np.eye(3, vlm.dim)).astype(np.float32)
    method.start(Task(("a", "b", "c"), anchors, 2, vlm=vlm))
    method._set_bank(np.eye(5, vlm.dim, dtype=np.float32))
    placed = [method.bank, method.here(anchors)]
    if cls is SimGcd:
        placed += [method.teacher, *method.head.parameters(), *method.teacher_head.parameters()]
    assert {tensor.device.type for tensor in placed} == {"meta"}
    trained = [p for group in method._optimiser.param_groups for p in group["params"]]
    assert {tensor.device.type for tensor in trained} == {"meta"}
