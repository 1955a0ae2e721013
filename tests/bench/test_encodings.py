"""Encodings kept for the methods that follow."""

from __future__ import annotations

import numpy as np
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
    first, second = vlm.encoder()(images), vlm.encoder()(images)
    plain = load_vlm(model).encoder()(images)
    assert np.array_equal(first, second) and np.array_equal(first, plain)
    assert saved_seconds(vlm) > 0


def test_other_norms_other_pixels_and_another_order_are_computed(vlm, images):
    first = vlm.encoder()(images)
    vlm.encoder()(images.flip(0))
    assert saved_seconds(vlm) == 0
    assert np.array_equal(vlm.encoder()(images), first)
    assert saved_seconds(vlm) > 0


def test_other_norms_read_back_what_lies_below_them_and_nothing_else(vlm, images, model):
    first = vlm.encoder()(images)
    plain = load_vlm(model)
    norms = {key: array + 0.5 for key, array in plain.trainable().norm_arrays().items()}
    other = vlm.encoder(norms)(images)
    assert saved_seconds(vlm) > 0 and not np.array_equal(other, first)
    assert np.array_equal(other, plain.encoder(norms)(images))


def test_a_pass_with_a_gradient_goes_through_the_model(vlm, images):
    vlm.encoder()(images)
    copy = vlm.trainable()
    parameter = next(iter(copy.norm_parameters("image").values())).requires_grad_(True)
    copy.encode_images(images).sum().backward()
    assert parameter.grad is not None and saved_seconds(vlm) == 0


def test_what_was_embedded_for_an_encoder_may_be_trained_on(vlm, images, model):
    vlm.encoder()(images)
    gradients = []
    for copy in (vlm.trainable(), load_vlm(model).trainable()):
        parameter = next(iter(copy.norm_parameters("image").values())).requires_grad_(True)
        copy.encode_embedded(copy.embed_images(images)).sum().backward()
        gradients.append(parameter.grad)
    assert saved_seconds(vlm) > 0 and torch.equal(*gradients)


def test_a_caller_who_writes_into_the_features_does_not_change_what_is_kept(vlm, images):
    first = vlm.encoder()(images)
    kept = first.copy()
    first[:] = 0
    vlm.encoder()(images)[:] = 0
    assert np.array_equal(vlm.encoder()(images), kept)


def test_large_embeddings_are_made_again_and_push_nothing_out(vlm, images, monkeypatch):
    monkeypatch.setattr(encodings, "KEPT_AN_IMAGE", vlm.dim * 4)  # a feature and no more
    copy = vlm.trainable()
    first, second = copy.embed_images(images), copy.embed_images(images)
    assert torch.equal(first, second) and saved_seconds(vlm) == 0
    vlm.encoder()(images)
    vlm.encoder()(images)
    assert saved_seconds(vlm) > 0


def test_the_oldest_features_go_when_there_are_too_many(vlm, images, monkeypatch):
    encode = vlm.encoder()
    monkeypatch.setattr(encodings, "KEPT_BYTES", encode(images).nbytes)
    encode(images.flip(0))
    encode(images)
    assert saved_seconds(vlm) == 0
    encode(images)
    assert saved_seconds(vlm) > 0
    forget(vlm)
    before = saved_seconds(vlm)
    encode(images)
    assert saved_seconds(vlm) == before
    assert isinstance(vlm, KeepsEncodings)
