"""Re-alignment (Eq. 3 and 4) against loops, finite differences and a slow SGD."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.methods.realign import realign, weighted_cross_entropy
from ttgcd.streams.base import Batch
from ttgcd.testing.model import TinyTrainable, TinyVLM
from ttgcd.testing.runs import opened


@pytest.fixture
def vlm() -> TinyVLM:
    return TinyVLM(seed=0)


@pytest.fixture
def model(vlm: TinyVLM) -> TinyTrainable:
    return vlm.trainable()


@pytest.fixture
def images(vlm: TinyVLM) -> torch.Tensor:
    size = vlm.preprocess.size
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (48, 3, size, size), generator=generator, dtype=torch.uint8)


@pytest.fixture
def anchors(vlm: TinyVLM) -> np.ndarray:
    with torch.no_grad():
        return vlm.encode_texts(["cat", "dog", "owl"]).numpy()


def settings(**changes):
    values = {
        "logit_scale": 20.0,
        "epochs": 2,
        "lr": 1e-2,
        "batch_size": 16,
        "optimiser": "sgd",
        "seed": 3,
    }
    return {**values, **changes}


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_keeping_what_lies_before_the_first_norm_changes_nothing(
    images, anchors, optimiser, monkeypatch
) -> None:
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 3, 48), rng.random(48)
    found = []
    for room in (2**28, 0):
        monkeypatch.setattr("ttgcd.methods.realign.EMBEDDED_BYTES", room)
        model = TinyVLM(seed=0).trainable()
        calls = []
        monkeypatch.setattr(model, "encode_embedded", _counted(model.encode_embedded, calls))
        realign(model, images, anchors, labels, weights, **settings(optimiser=optimiser))
        assert len(calls) == (6 if room else 0)
        found.append(model.norm_arrays())
    for key, kept in found[0].items():
        np.testing.assert_allclose(kept, found[1][key], atol=1e-6)


def _counted(function, calls):
    def call(*arguments):
        calls.append(1)
        return function(*arguments)

    return call


def test_eq3_and_eq4_loss_against_loops(vlm, images, anchors) -> None:
    rng = np.random.default_rng(0)
    with torch.no_grad():
        features = vlm.encode_images(images)
    labels, weights = rng.integers(0, 3, 48), rng.random(48)
    found = weighted_cross_entropy(
        features,
        torch.from_numpy(anchors),
        torch.from_numpy(labels),
        torch.from_numpy(weights.astype(np.float32)),
        20.0,
        float(weights.mean()),
    )
    total = 0.0
    for v, label, weight in zip(features.double().numpy(), labels, weights):
        cosines = [float(v @ z) for z in anchors.astype(float)]
        alignment = -20.0 * cosines[label]
        normalisation = math.log(sum(math.exp(20.0 * c) for c in cosines))
        total += weight * (alignment + normalisation)
    assert found.item() == pytest.approx(total / weights.sum(), abs=1e-5)


def test_minibatch_losses_average_to_eq3(vlm, images, anchors) -> None:
    rng = np.random.default_rng(0)
    with torch.no_grad():
        features = vlm.encode_images(images)
    labels = torch.from_numpy(rng.integers(0, 3, 48))
    weights = torch.from_numpy(rng.random(48).astype(np.float32))
    mean, rows = float(weights.mean()), torch.from_numpy(anchors)
    whole = weighted_cross_entropy(features, rows, labels, weights, 20.0, mean)
    parts = [
        weighted_cross_entropy(
            features[i : i + 16], rows, labels[i : i + 16], weights[i : i + 16], 20.0, mean
        )
        for i in range(0, 48, 16)
    ]
    assert torch.stack(parts).mean().item() == pytest.approx(whole.item(), abs=1e-5)


def test_realign_equals_sgd_written_out(model, images, anchors) -> None:
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 3, 48), rng.random(48)
    losses: list[float] = []
    realign(
        model,
        images,
        anchors,
        labels,
        weights,
        **settings(),
        after_epoch=lambda epoch, loss, optimiser: losses.append(loss),
    )
    found = model.norm_arrays("image")
    model.reset()
    parameters = model.norm_parameters("image")
    for epoch in range(2):
        order = np.random.default_rng([3, epoch]).permutation(48)
        for begin in range(0, 48, 16):
            rows = order[begin : begin + 16]
            for p in parameters.values():
                p.requires_grad_(True)
            p_all = torch.softmax(
                20.0 * model.encode_images(images[rows]) @ torch.tensor(anchors).T, 1
            )
            chosen = p_all[torch.arange(16), torch.tensor(labels[rows])]
            loss = -(torch.tensor(weights[rows]) * chosen.log()).sum() / 16 / weights.mean()
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            with torch.no_grad():
                for p, g in zip(parameters.values(), gradients):
                    p -= 1e-2 * g
    for key, array in model.norm_arrays("image").items():
        np.testing.assert_allclose(found[key], array, atol=1e-5)
    assert losses[1] < losses[0]


def test_gradient_against_finite_differences(model, images, anchors) -> None:
    labels = torch.zeros(8, dtype=torch.long)
    weights = torch.linspace(0.1, 1, 8)
    name, parameter = next(iter(model.norm_parameters("image").items()))

    def loss() -> torch.Tensor:
        return weighted_cross_entropy(
            model.encode_images(images[:8]), torch.from_numpy(anchors), labels, weights, 20.0, 0.5
        )

    parameter.requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(), [parameter])
    parameter.requires_grad_(False)
    for i in range(3):
        with torch.no_grad():
            parameter[i] += 1e-2
            up = loss().item()
            parameter[i] -= 2e-2
            down = loss().item()
            parameter[i] += 1e-2
        assert gradient[i].item() == pytest.approx((up - down) / 2e-2, rel=0.05, abs=2e-3), name


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "adam", "adamw"])
def test_an_interrupted_realignment_goes_on_exactly(model, images, anchors, optimiser) -> None:
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 3, 48), rng.random(48)
    realign(model, images, anchors, labels, weights, **settings(epochs=4, optimiser=optimiser))
    whole = model.norm_arrays("image")
    model.reset()
    from ttgcd.methods.optimiser_state import optimiser_arrays

    kept: dict[str, np.ndarray] = {}
    realign(
        model,
        images,
        anchors,
        labels,
        weights,
        **settings(epochs=2, optimiser=optimiser),
        after_epoch=lambda epoch, loss, step: kept.update(optimiser_arrays(step)),
    )
    realign(
        model,
        images,
        anchors,
        labels,
        weights,
        **settings(epochs=4, optimiser=optimiser),
        first_epoch=2,
        optimiser_state=kept,
    )
    for key, array in model.norm_arrays("image").items():
        np.testing.assert_array_equal(array, whole[key])


def all_images(images: torch.Tensor) -> Batch:
    return Batch(tuple(map(str, range(48))), 0, tuple(range(48)), 48, images=images)


def test_the_answer_carries_the_norms_of_the_image_tower_and_the_model_keeps_its_own(
    vlm, images, anchors
) -> None:
    before, pretrained = vlm.all_weights(), vlm.trainable().norm_arrays("image")
    task = Task(("cat", "dog", "owl"), anchors, 2, vlm=vlm, logit_scale=20.0)
    session = opened(Pact(warmup=48, epochs=2), task).session
    (answer,) = session.push(all_images(images))
    assert answer.norms is not None and answer.norms.keys() == pretrained.keys()
    assert any((answer.norms[key] != pretrained[key]).any() for key in pretrained)
    assert session.encoder.fingerprint != vlm.encoder().fingerprint
    assert all(np.array_equal(v, before[k]) for k, v in vlm.all_weights().items())


def test_pseudo_labels_and_margins_stay_those_of_the_pretrained_encoder(vlm, images, anchors):
    task = Task(("cat", "dog", "owl"), anchors, 0, vlm=vlm, logit_scale=20.0)
    method = Pact(warmup=48, epochs=5, lr=0.1, buffer_labels="zero-shot")
    session = opened(method, task).session
    before = session.predict(all_images(images))
    (revised,) = session.push(all_images(images))
    np.testing.assert_array_equal(revised.category, before.category)
    np.testing.assert_allclose(revised.margin, before.margin, atol=1e-6)


def test_zero_margins_skip_the_realignment_with_a_warning(vlm, images, anchors) -> None:
    same = np.repeat(anchors[:1], 2, axis=0)
    session = opened(Pact(warmup=48), Task(("a", "b"), same, 1, vlm=vlm)).session
    with pytest.warns(UserWarning, match="re-alignment is skipped"):
        (answer,) = session.push(all_images(images))
    assert answer.norms is None and not vlm.made
    assert vlm.encoded == 48  # nothing changed, so nothing is encoded again


def test_without_epochs_the_buffer_is_encoded_once(vlm, images, anchors) -> None:
    session = opened(Pact(warmup=48, epochs=0), Task(("a", "b", "c"), anchors, 1, vlm=vlm)).session
    session.push(all_images(images))
    assert vlm.encoded == 48


def test_a_diverging_realignment_is_reported(vlm, images, anchors) -> None:
    method = Pact(warmup=48, lr=1e38, realign_batch_size=8)
    session = opened(method, Task(("cat", "dog", "owl"), anchors, 1, vlm=vlm)).session
    with pytest.raises(InputError, match=r"finite|learning rate"):
        session.push(all_images(images))


def continual_norms(vlm, images, anchors, **config):
    """Norms after the warm-up and after each of two streaming batches."""
    method = Pact(warmup=8, epochs=0, **config)
    task = Task(("cat", "dog", "owl"), anchors, 1, vlm=vlm, logit_scale=20.0)
    session = opened(method, task, size=8).session
    return [answer.norms for answer in session.push(all_images(images).split(24)[0])]


def test_continual_realignment_moves_the_norms_while_streaming(vlm, images, anchors) -> None:
    assert continual_norms(vlm, images, anchors, continual_lr=0.0) == [None, None, None]
    _, first, second = continual_norms(vlm, images, anchors, continual_lr=1e-2)
    assert first is not None and any((first[k] != second[k]).any() for k in first)


def test_the_continual_ablation_honours_the_optimiser(vlm, images, anchors) -> None:
    """Adam's first step is lr in every coordinate with a gradient, SGD's is lr times it."""
    pretrained = vlm.trainable().norm_arrays()
    _, adam, _ = continual_norms(vlm, images, anchors, continual_lr=1e-2, optimiser="adam")
    _, sgd, _ = continual_norms(vlm, images, anchors, continual_lr=1e-2)
    steps = np.concatenate([np.abs(adam[k] - pretrained[k]).ravel() for k in adam])
    assert np.isclose(steps, 1e-2, atol=1e-4).mean() > 0.9
    assert not np.allclose(
        np.concatenate([sgd[k] for k in sgd]), np.concatenate([adam[k] for k in sgd])
    )


def test_the_minibatch_normaliser_divides_by_the_minibatchs_own_weights(vlm, images, anchors):
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 3, 48), rng.random(48).astype(np.float32)
    with torch.no_grad():
        features = vlm.encode_images(images)
    cosines = (features @ torch.from_numpy(anchors).T).numpy()
    total = 0.0
    for row, label, weight in zip(cosines, labels, weights):
        total += weight * (math.log(sum(math.exp(20.0 * c) for c in row)) - 20.0 * row[label])
    arguments = (features, torch.from_numpy(anchors), torch.from_numpy(labels))
    found = weighted_cross_entropy(*arguments, torch.from_numpy(weights), 20.0, None)
    assert found.item() == pytest.approx(total / weights.sum(), rel=1e-5)
    nothing = weighted_cross_entropy(*arguments, torch.zeros(48), 20.0, None)
    assert nothing.item() == 0.0


def test_the_normaliser_matters_with_minibatches_and_not_without(images, anchors):
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 3, 48), rng.random(48)

    def norms(normaliser, batch_size):
        vlm = TinyVLM(seed=0).trainable()
        changes = {"normaliser": normaliser, "batch_size": batch_size}
        realign(vlm, images, anchors, labels, weights, **settings(**changes))
        return np.concatenate([array.ravel() for array in vlm.norm_arrays().values()])

    np.testing.assert_allclose(norms("buffer", 48), norms("minibatch", 48), atol=1e-6)
    assert not np.allclose(norms("buffer", 8), norms("minibatch", 8), atol=1e-6)
    with pytest.raises(InputError, match="normaliser"):
        Pact(normaliser="none")
