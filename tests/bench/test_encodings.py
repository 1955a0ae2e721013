"""Encodings kept for the methods that follow."""

from __future__ import annotations

import pytest
import torch

from ttgcd.bench import encodings
from ttgcd.bench.encodings import KeepsEncodings, forget, keeping_encodings, saved_seconds
from ttgcd.vlm import load_vlm


@pytest.fixture
def vlm(model):
    return keeping_encodings(load_vlm(model))


@pytest.fixture
def images():
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8, generator=generator)


def test_the_same_batch_under_the_same_norms_is_read_back_bit_for_bit(vlm, images, model):
    with torch.inference_mode():
        first, second = vlm.encode_images(images), vlm.encode_images(images)
        plain = load_vlm(model).encode_images(images)
    assert torch.equal(first, second) and torch.equal(first, plain)
    assert saved_seconds(vlm) > 0


def test_other_norms_other_pixels_another_order_or_raw_features_are_computed(vlm, images):
    with torch.no_grad():
        first = vlm.encode_images(images)
        vlm.encode_images(images.flip(0))
        vlm.encode_images(images, normalize=False)
        next(iter(vlm.norm_parameters("image").values())).add_(0.5)
        assert not torch.equal(vlm.encode_images(images), first)
        assert saved_seconds(vlm) == 0
        vlm.reset()
        assert torch.equal(vlm.encode_images(images), first)
    assert saved_seconds(vlm) > 0


def test_a_pass_with_a_gradient_goes_through_the_model(vlm, images):
    parameter = next(iter(vlm.norm_parameters("image").values()))
    with torch.no_grad():
        vlm.encode_images(images)
    parameter.requires_grad_(True)
    with torch.enable_grad():
        vlm.encode_images(images).sum().backward()
    assert parameter.grad is not None and saved_seconds(vlm) == 0
    parameter.requires_grad_(False)


def test_a_caller_who_writes_into_the_features_does_not_change_what_is_kept(vlm, images):
    with torch.no_grad():
        first = vlm.encode_images(images)
        kept = first.clone()
        first.zero_()
        vlm.encode_images(images).zero_()
        assert torch.equal(vlm.encode_images(images), kept)


def test_the_oldest_features_go_when_there_are_too_many(vlm, images, monkeypatch):
    with torch.no_grad():
        monkeypatch.setattr(encodings, "KEPT_BYTES", vlm.encode_images(images).nbytes)
        vlm.encode_images(images.flip(0))
        vlm.encode_images(images)
        assert saved_seconds(vlm) == 0
        vlm.encode_images(images)
        assert saved_seconds(vlm) > 0
        forget(vlm)
        before = saved_seconds(vlm)
        vlm.encode_images(images)
        assert saved_seconds(vlm) == before
    assert isinstance(vlm, KeepsEncodings)
