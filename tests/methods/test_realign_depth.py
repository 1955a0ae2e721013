"""Re-alignment of the last blocks alone, and its early end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.methods import realign as realign_module
from ttgcd.methods.base import Caller, Task
from ttgcd.methods.pact import Pact
from ttgcd.methods.realign import converged, realign
from ttgcd.testing.model import batches
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors
from ttgcd.vlm.base import VLM, Trainable


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return load_vlm("mini", "cpu")


def images(count: int = 48) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, 32, 32), generator=generator, dtype=torch.uint8)


def trained(vlm: VLM, depth: int, **options: Any) -> Trainable:
    model = vlm.trainable()
    anchors = text_anchors(vlm, ["cat", "dog", "house"], cache=False)
    realign(
        model,
        images(),
        anchors,
        np.arange(48) % 3,
        np.full(48, 0.5),
        **{
            "logit_scale": vlm.logit_scale,
            "epochs": 3,
            "lr": 1e-2,
            "batch_size": 16,
            "optimiser": "sgd",
            "seed": 0,
            "depth": depth,
            **options,
        },
    )
    return model


def test_only_the_last_blocks_and_the_norm_behind_them_move(vlm: VLM) -> None:
    before, after = vlm.trainable().norm_arrays(), trained(vlm, depth=1).norm_arrays()
    moved = {key for key in before if not np.array_equal(before[key], after[key])}
    upper = {key for key in before if key.startswith(("encoder.layers.2.", "post_layernorm."))}
    assert moved == upper


def test_all_blocks_by_number_are_all_blocks(vlm: VLM) -> None:
    every, counted = (trained(vlm, depth=d).norm_arrays() for d in (0, 3))
    for key, array in every.items():
        np.testing.assert_array_equal(array, counted[key])


def test_activations_that_are_kept_and_ones_computed_again_train_the_same_norms(
    vlm: VLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = trained(vlm, depth=2).norm_arrays()
    monkeypatch.setattr(realign_module, "LOWER_BYTES", 0)
    again = trained(vlm, depth=2).norm_arrays()
    for key, array in kept.items():
        np.testing.assert_allclose(array, again[key], atol=2e-6)


def test_fewer_images_pass_the_lower_blocks(vlm: VLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each image goes through what is not trained once, whatever the number of epochs."""
    passed = 0
    kind = type(vlm.trainable())
    embed = kind.embed_images

    def counting(self: Any, given: torch.Tensor, below: int = 0) -> torch.Tensor:
        nonlocal passed
        passed += len(given)
        return embed(self, given, below)

    monkeypatch.setattr(kind, "embed_images", counting)
    trained(vlm, depth=1, epochs=5)
    assert passed == 48 + 1  # and one image whose size tells whether all can be kept


def test_plain_sgd_is_torchs_bit_for_bit(vlm: VLM, monkeypatch: pytest.MonkeyPatch) -> None:
    own = trained(vlm, depth=0).norm_arrays()
    monkeypatch.setattr(realign_module, "PlainSgd", torch.optim.SGD)
    for key, array in trained(vlm, depth=0).norm_arrays().items():
        np.testing.assert_array_equal(own[key], array)


def test_convergence_is_a_share_of_the_best_loss_before() -> None:
    assert not converged([1.0], 0.1)
    assert not converged([1.0, 0.8], 0.1)
    assert converged([1.0, 0.95], 0.1)
    assert converged([1.0, 1.2], 0.1)
    assert not converged([1.0, 1.0], 0.0), "off unless asked for"


class Listener(Caller):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def warm(vlm: VLM, **options: Any) -> tuple[Pact, Listener]:
    names = ("cat", "dog", "house")
    task = Task(names, text_anchors(vlm, names, cache=False), 2, vlm=vlm, logit_scale=20.0)
    method = Pact(warmup=32, **options)
    listener = method.caller = Listener()
    method.start(task)
    encoder = vlm.encoder()
    for batch in batches(images(), 16):
        method.observe(type(batch)(**{**vars(batch), "features": encoder(batch.images)}))
    return method, listener


def test_training_ends_when_the_loss_has_settled(vlm: VLM) -> None:
    method, _ = warm(vlm, epochs=30, early_stop=0.9)
    assert len(method.health()["realign_losses"]) == 2
    assert len(warm(vlm, epochs=4)[0].health()["realign_losses"]) == 4


def test_a_long_warmup_is_announced_with_what_makes_it_short(
    vlm: VLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert warm(vlm, epochs=1)[1].said == []
    monkeypatch.setattr("ttgcd.methods.stage_one.LONG_SECONDS", 0.0)
    (said,) = warm(vlm, epochs=2)[1].said
    assert "32 images" in said and "minutes" in said
    assert "`epochs=0`" in said and "`realign_depth=1`" in said


@pytest.mark.parametrize("field", ["realign_depth", "early_stop"])
def test_negative_values_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=field):
        Pact(**{field: -1})  # type: ignore[arg-type]
