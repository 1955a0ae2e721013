"""A tower in int8 stays near the one it was made from, and leaves that one alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.vlm.checkpoints import write_clip
from tests.vlm.test_towers import tower
from ttgcd.vlm import load_vlm
from ttgcd.vlm.base import layer_norms
from ttgcd.vlm.int8 import Int8Linear, int8_copy


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp("clip"))


def pixels() -> torch.Tensor:
    return torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_features_stay_near_those_in_float32() -> None:
    for family in ("clip", "siglip"):
        image = tower(family).vision_model
        with torch.inference_mode():
            near = torch.cosine_similarity(image(pixels()), int8_copy(image)(pixels()))
        assert near.min() > 0.99


def test_every_linear_of_the_blocks_is_replaced_and_the_original_keeps_its_own() -> None:
    image = tower("clip").vision_model
    before = {key: value.clone() for key, value in image.state_dict().items()}
    twin = int8_copy(image)
    assert sum(isinstance(part, Int8Linear) for part in twin.modules()) == 6 * image.depth
    assert not any(isinstance(part, Int8Linear) for part in image.modules())
    for key, value in image.state_dict().items():
        assert torch.equal(value, before[key])


def test_norms_are_shared_and_not_rounded() -> None:
    image = tower("clip").vision_model
    twin = layer_norms(int8_copy(image))
    assert all(twin[key] is parameter for key, parameter in layer_norms(image).items())


def test_a_matrix_product_is_that_of_the_rounded_weights() -> None:
    generator = torch.Generator().manual_seed(0)
    linear = torch.nn.Linear(16, 8)
    x = torch.randn(5, 16, generator=generator)
    with torch.inference_mode():
        got, exact = Int8Linear(linear)(x), linear(x)
    # One step of a weight is 1/127 of its row's largest, one of x 1/127 of its range.
    step = linear.weight.abs().amax(dim=1) / 127
    bound = 0.5 * step * x.abs().sum(dim=1, keepdim=True)
    bound = bound + 0.5 * (x.max() - x.min()) / 127 * linear.weight.abs().sum(dim=1) * 1.1
    assert bool(((got - exact).abs() <= bound + 1e-4).all())


def test_an_int8_encoder_has_a_fingerprint_of_its_own_and_its_own_norms(clip_folder) -> None:
    vlm = load_vlm(str(clip_folder), "cpu")
    images = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8)
    plain, fast = vlm.encoder(), vlm.encoder(precision="int8")
    assert plain.fingerprint != fast.fingerprint
    assert (plain(images) * fast(images)).sum(axis=1).min() > 0.99
    moved = {key: 1.1 * array + 0.05 for key, array in vlm.trainable().norm_arrays().items()}
    other = vlm.encoder(moved, "int8")
    assert (vlm.encoder(moved)(images) * other(images)).sum(axis=1).min() > 0.99
    assert (other(images) * fast(images)).sum(axis=1).min() < 0.999
    np.testing.assert_array_equal(plain(images), vlm.encoder()(images))
