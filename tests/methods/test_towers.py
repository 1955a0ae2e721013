"""The adapting methods on a real CLIP architecture (tiny, random weights)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.fakes import batches, image_world
from tests.methods.contract.checks import NEEDS_IMAGES, make, sound, summary
from tests.vlm.checkpoints import write_clip
from ttgcd.methods.base import Task
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors
from ttgcd.vlm.base import VLM


@pytest.fixture(scope="module")
def vlm(tmp_path_factory) -> VLM:
    return load_vlm(str(write_clip(tmp_path_factory.mktemp("model") / "clip")), device="cpu")


def weights(vlm) -> dict[str, np.ndarray]:
    return {key: value.numpy().copy() for key, value in vlm.model.state_dict().items()}


@pytest.mark.parametrize("name", NEEDS_IMAGES)
def test_a_stream_changes_the_declared_norms_and_start_undoes_it(name: str, vlm) -> None:
    vlm.reset()
    pretrained = weights(vlm)
    names = ("cat", "dog", "tree")
    task = Task(names, text_anchors(vlm, names, cache=False), 2, vlm, vlm.logit_scale)
    data = image_world(24, 5, size=vlm.preprocess.size)[0]
    method = make(name)
    method.start(task)
    parts = [method.observe(batch) for batch in batches(data, 8)]
    state = method.state_dict()
    parts.append(method.finish())
    sound(summary(parts, len(data)), method, task)
    changed = {k for k, w in weights(vlm).items() if not np.array_equal(w, pretrained[k])}
    towers = {"vision_model"} | ({"text_model"} if "text" in method.trains else set())
    assert {key.split(".")[0] for key in changed} == towers
    assert all("norm" in key for key in changed)
    method.start(task)
    assert all(np.array_equal(w, pretrained[k]) for k, w in weights(vlm).items())
    method.load_state_dict(state)
    again = method.finish()
    assert np.array_equal(again.category, parts[-1].category)


def test_the_unadapted_model_passes_its_own_confidence_filter(vlm) -> None:
    """Kernels with and without gradient may round differently: all samples pass all the same."""
    from ttgcd.methods.ostta import Ostta, confidence_kept

    vlm.reset()
    names = ("cat", "dog", "tree")
    method = Ostta()
    method.start(Task(names, text_anchors(vlm, names, cache=False), 2, vlm, vlm.logit_scale))
    data = image_world(24, 5, size=vlm.preprocess.size)[0]
    frozen = method._frozen(data)
    with torch.enable_grad():
        now = method.forward(data)
    assert frozen is not None
    assert confidence_kept(now, frozen).all()
