"""The adapting methods on a real CLIP architecture (tiny, random weights)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.vlm.checkpoints import write_clip
from ttgcd.methods.base import Task
from ttgcd.methods.registry import load_method
from ttgcd.testing.model import image_world
from ttgcd.testing.runs import run, sound
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors
from ttgcd.vlm.base import VLM


@pytest.fixture(scope="module")
def vlm(tmp_path_factory) -> VLM:
    return load_vlm(str(write_clip(tmp_path_factory.mktemp("model") / "clip")), device="cpu")


def weights(vlm) -> dict[str, np.ndarray]:
    return {key: value.numpy().copy() for key, value in vlm.model.state_dict().items()}


ADAPTING = ("tent++", "batclip++", "sat++", "ostta++", "unient++")


@pytest.mark.parametrize("name", ADAPTING)
def test_a_stream_trains_the_declared_norms_of_a_copy_and_leaves_the_model_alone(name, vlm) -> None:
    pretrained = weights(vlm)
    names = ("cat", "dog", "tree")
    task = Task(names, text_anchors(vlm, names, cache=False), 2, vlm, vlm.logit_scale)
    data = image_world(24, 5, size=vlm.preprocess.size)[0]
    method = load_method(name)
    result = run(method, task, data, 8)
    sound(result, method)
    assert all(np.array_equal(w, pretrained[k]) for k, w in weights(vlm).items())
    changed = {k for k, w in weights(method.model).items() if not np.array_equal(w, pretrained[k])}
    towers = {"vision_model"} | ({"text_model"} if "text" in method.trains else set())
    assert {key.split(".")[0] for key in changed} == towers
    assert all("norm" in key for key in changed)


def test_the_unadapted_model_passes_its_own_confidence_filter(vlm) -> None:
    """Kernels with and without gradient may round differently: all samples pass all the same."""
    from ttgcd.methods.ostta import Ostta, confidence_kept

    names = ("cat", "dog", "tree")
    method = Ostta()
    method.start(Task(names, text_anchors(vlm, names, cache=False), 2, vlm, vlm.logit_scale))
    data = image_world(24, 5, size=vlm.preprocess.size)[0]
    embedded = method.model.embed_images(data)
    frozen = method._frozen(embedded)
    with torch.enable_grad():
        now = method.forward(embedded)
    assert frozen is not None
    assert confidence_kept(now, frozen).all()
