"""The shared pipeline of the "++" methods: what is split, stepped, skipped and clustered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.methods.adapting import OneLoss, TestTimeAdaptation
from ttgcd.methods.batclip import BatClip
from ttgcd.methods.ostta import Ostta
from ttgcd.methods.sat import TEMPLATES, Sat
from ttgcd.methods.tent import Tent
from ttgcd.methods.unient import UniEnt
from ttgcd.methods.zero_shot_kmeans import ZeroShotKMeans
from ttgcd.prototypes.clusters import kmeans
from ttgcd.prototypes.mixture import known_mask
from ttgcd.testing.checks import images
from ttgcd.testing.model import TinyVLM, batches, image_world
from ttgcd.testing.runs import run, task_for
from ttgcd.vlm.anchors import text_anchors

FIVE = (Tent, BatClip, Sat, Ostta, UniEnt)


@pytest.mark.parametrize("cls", FIVE)
def test_without_a_learning_rate_it_is_zero_shot_and_kmeans(cls) -> None:
    """lr 0 leaves the pipeline alone: split, argmax, k-means."""
    if cls is Sat:  # answers with its own templates
        method: TestTimeAdaptation = Sat(lr=0.0, weight_decay=0.0, multi_template=False)
    else:
        method = cls(lr=0.0)
    task = task_for(TinyVLM())
    found = run(method, task, images())
    plain = run(ZeroShotKMeans(), task_for(TinyVLM()), images())
    assert np.array_equal(found.category, plain.category)


def test_the_pipeline_step_by_step() -> None:
    vlm = TinyVLM()
    task = task_for(vlm)
    data = images()
    found = run(ZeroShotKMeans(), task, data)
    features = vlm.encode_images(data).numpy()
    cosines = features @ task.anchors.T
    known = np.concatenate(
        [known_mask(cosines[i : i + 16].max(axis=1), task.seed) for i in range(0, len(data), 16)]
    )
    assert 0 < known.sum() < len(known)
    expected = cosines.argmax(axis=1)
    expected[~known] = 3 + kmeans(features[~known], 2, task.seed).labels
    assert np.array_equal(found.category, expected)


def test_one_tent_step_is_adam_on_the_known_entropy() -> None:
    vlm = TinyVLM()
    task = task_for(vlm)
    data = images(20)
    model = vlm.trainable()
    parameters = model.norm_parameters("image")
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    logits = 100.0 * model.encode_images(data) @ torch.from_numpy(task.anchors).T
    best = (logits.detach() / 100.0).max(dim=1).values.numpy()
    p = logits[torch.from_numpy(known_mask(best, task.seed))].softmax(dim=1)
    loss = -torch.special.xlogy(p, p).sum(dim=1).mean()
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    # Adam's first step is lr * g / (|g| + eps), whatever the size of g.
    expected = {
        key: parameter.detach().numpy() - 1e-3 * (g / (g.abs() + 1e-8)).numpy()
        for (key, parameter), g in zip(parameters.items(), gradients)
    }
    method = Tent()
    method.start(task)
    method.observe(batches(data, 20)[0])
    for key, array in method.model.norm_arrays("image").items():
        np.testing.assert_allclose(array, expected[key], atol=2e-6)


@pytest.mark.parametrize("cls,after", [(Tent, False), (BatClip, False), (Sat, True)])
def test_answers_come_from_before_the_step_except_for_sat(cls, after: bool) -> None:
    vlm = TinyVLM()
    task = task_for(vlm)
    data = images(20)
    pretrained = vlm.encode_images(data).numpy()
    method = cls(lr=1e-2)
    method.start(task)
    rows = method.observe(batches(data, 20)[0])
    with torch.no_grad():
        adapted = method.model.encode_images(data).numpy()
    assert not np.allclose(pretrained, adapted, atol=1e-4)
    np.testing.assert_allclose(rows.features, adapted if after else pretrained, atol=1e-6)


def test_more_steps_move_further() -> None:
    shifts = []
    for steps in (1, 3):
        vlm = TinyVLM()
        method = Tent(steps=steps)
        method.start(task_for(vlm))
        before = method.model.norm_arrays("image")
        method.observe(batches(images(20), 20)[0])
        after = method.model.norm_arrays("image")
        shifts.append(sum(np.abs(after[key] - before[key]).sum() for key in before))
    assert shifts[1] > 1.5 * shifts[0]


def test_sat_takes_one_step_a_template_and_answers_by_their_mean() -> None:
    vlm = TinyVLM()
    task = task_for(vlm)
    averaged = text_anchors(vlm, task.known, TEMPLATES, cache=False)
    for multi, expected in ((True, 8), (False, 1)):
        method = Sat(multi_template=multi)
        method.start(task)
        taken = []
        method.descend = lambda loss, taken=taken: taken.append(loss)
        rows = method.observe(batches(images(20), 20)[0])
        assert len(taken) == expected
    method = Sat()
    method.start(task)
    rows = method.observe(batches(images(20), 20)[0])
    np.testing.assert_allclose(method.prototypes()[:3], averaged, atol=1e-6)
    known = rows.category < 3
    expected = (rows.features @ averaged.T).argmax(axis=1)
    assert np.array_equal(rows.category[known], expected[known])


def test_batclip_answers_by_its_adapted_anchors() -> None:
    vlm = TinyVLM()
    task = task_for(vlm)
    method = BatClip(lr=1e-2)
    run(method, task, images())
    now = text_anchors(method.model, task.known, cache=False)
    assert not np.allclose(now, task.anchors, atol=1e-3)
    np.testing.assert_allclose(method.prototypes()[:3], now, atol=1e-6)


def test_frozen_split_does_not_depend_on_the_adaptation() -> None:
    """With a wild learning rate the adapted split drifts, the frozen one does not."""
    data = images()
    flags = {}
    for lr in (0.0, 0.3):
        rows = run(Tent(lr=lr, split_features="frozen"), task_for(TinyVLM()), data)
        flags[lr] = rows.category >= 3
    assert np.array_equal(flags[0.0], flags[0.3])


def test_reencoding_clusters_the_features_of_the_final_model() -> None:
    vlm = TinyVLM()
    data = images()
    method = Tent(lr=1e-2, reencode_novel=True)
    result = run(method, task_for(vlm), data)
    last = result.parts[-1]
    with torch.no_grad():
        final_features = method.model.encode_images(data[torch.from_numpy(last.index)]).numpy()
    np.testing.assert_allclose(last.features, final_features, atol=1e-6)
    usual = run(Tent(lr=1e-2), task_for(TinyVLM()), data)
    assert not np.allclose(usual.parts[-1].features, last.features, atol=1e-3)


@dataclass(kw_only=True)
class NotANumber(OneLoss):
    """A loss that is NaN on every second batch."""

    name: ClassVar[str] = "not-a-number"
    count: ClassVar[int] = 0

    def loss(self, forward, split, frozen):
        NotANumber.count += 1
        factor = float("nan") if NotANumber.count % 2 else 1.0
        return factor * forward.logits.sum()


def test_a_loss_that_is_not_a_number_is_left_out_and_counted() -> None:
    vlm = TinyVLM()
    method = NotANumber()
    result = run(method, task_for(vlm), images(64))
    assert (result.category >= 0).all()
    assert method.health()["skipped_steps"] == {"nothing_known": 0, "not_finite": 2}
    assert all(np.isfinite(w).all() for w in method.model.all_weights().values())


def test_novel_classes_that_are_apart_are_found() -> None:
    """Two far-off pictures beside known ones: the end's k-means tells them apart."""
    data, labels = image_world(120, 4, noise=4.0, seed=0)
    vlm = TinyVLM()
    features = vlm.encode_images(data).numpy()
    # Anchors at the image means of two classes, so that "known" means something here.
    anchors = np.stack([features[labels == c].mean(axis=0) for c in (0, 1)])
    anchors /= np.linalg.norm(anchors, axis=1, keepdims=True)
    task = task_for(vlm, known=2, novel=2)
    task = type(task)(task.known, anchors.astype(np.float32), 2, vlm)
    for method in (ZeroShotKMeans(), Tent(lr=1e-4)):
        found = run(method, task, data, size=40).category
        assert np.array_equal(found[labels < 2], labels[labels < 2])
        assert len(np.unique(found[labels == 2])) == 1
        assert len(np.unique(found[labels == 3])) == 1
        assert found[labels == 2][0] != found[labels == 3][0]


@pytest.mark.parametrize(
    "options", [{"lr": -1.0}, {"steps": 0}, {"split_features": "other"}, {"weight_decay": -1.0}]
)
def test_wrong_options_are_named(options: dict) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Tent(**options)


def test_the_defaults_are_those_that_the_sweeps_imply() -> None:
    """The centre of every sweep of the paper's Table bsweep."""
    assert Tent().lr == 1e-3
    assert (BatClip().lr, BatClip().weight_decay) == (1e-3, 0.0)
    sat = Sat()
    assert (sat.lr, sat.weight_decay, sat.temperature) == (1e-4, 1e-2, 0.01)
    assert (sat.epsilon, sat.iterations, sat.multi_template) == (0.7, 3, True)
    assert (Ostta().lr, Ostta().alpha_div, Ostta().alpha_ood) == (1e-3, 0.2, 0.1)
    assert (UniEnt().lr, UniEnt().alpha_div, UniEnt().alpha_ood) == (1e-3, 0.1, 0.05)
