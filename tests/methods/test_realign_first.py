"""The stage in front of a method: answers as on an encoder that was re-aligned from the start."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.base import Caller, Task
from ttgcd.methods.realign import realign
from ttgcd.methods.registry import load_method, load_preset
from ttgcd.methods.stage_one import Realignment
from ttgcd.methods.zero_shot import text_says
from ttgcd.testing.model import TinyVLM, batches, image_world
from ttgcd.testing.runs import COLUMNS, SIZE, opened, run, task_for

W = 40  # two batches and a half
STAGE = {"warmup": W, "epochs": 3, "lr": 0.05, "realign_batch_size": 16, "optimiser": "adam"}
METHODS = {
    "scout": {"warmup": 56, "reservoir": 64, "restarts": 2, "fresh_restarts": 1, "words": 10},
    "talon": {"warmup": 24},
    "simgcd++": {"warmup": 50, "hidden": 8},
    "kmeans": {},
    "zero-shot": {},
}


def pictures(count: int = 120) -> torch.Tensor:
    return image_world(count, 5, seed=3)[0]


def by_hand(task: Task, images: torch.Tensor) -> dict[str, np.ndarray]:
    """The norms after Eq. 3 on the first W images, without the stage."""
    assert task.vlm is not None
    labels, margins = text_says(task, task.encoder()(images[:W]))
    model = task.vlm.trainable()
    realign(
        model,
        images[:W],
        task.anchors,
        labels,
        margins,
        logit_scale=task.logit_scale,
        epochs=3,
        lr=0.05,
        batch_size=16,
        optimiser="adam",
        seed=task.seed,
    )
    return model.norm_arrays()


def last_words(parts: list[Answer], count: int) -> dict[str, np.ndarray]:
    columns = {}
    for name in COLUMNS[1:]:
        columns[name] = np.full(count, -9.0)
        for part in parts:
            columns[name][part.index] = getattr(part, name)
    return columns


@pytest.mark.parametrize("name", METHODS)
def test_a_method_behind_the_stage_answers_as_on_an_encoder_realigned_by_hand(name: str) -> None:
    images, task = pictures(), task_for(TinyVLM())
    staged = load_method(name, **METHODS[name], realign=STAGE)
    found = run(staged, task, images)
    norms = by_hand(task, images)
    plain = load_method(name, **METHODS[name])
    expected = run(plain, replace(task, norms=norms), images)
    for column, values in last_words(expected.parts, len(images)).items():
        np.testing.assert_array_equal(last_words(found.parts, len(images))[column], values, column)
    for key, array in norms.items():
        np.testing.assert_array_equal(staged.norms()[key], array)
    assert staged.categories() == plain.categories()
    pretrained = run(load_method(name, **METHODS[name]), task, images)
    scores = [last_words(r.parts, len(images))["score"] for r in (found, pretrained)]
    assert not np.array_equal(*scores), "the encoder was to change"


def test_nothing_is_said_before_the_buffer_is_full_and_then_everything() -> None:
    stream = opened(load_method("zero-shot", realign=STAGE), task_for(TinyVLM()))
    sizes, norms = [], []
    for batch in batches(pictures(64), SIZE):
        stream.session.push(batch)
        sizes.append(len(stream.recorder.parts[-1]))
        norms.append(stream.recorder.parts[-1].norms is not None)
    assert sizes == [0, 0, 3 * SIZE, SIZE]
    assert norms == [False, False, True, False]


def test_exactly_w_images_train_the_encoder() -> None:
    images = pictures(3 * SIZE)
    changed = images.clone()
    changed[W:] = 255 - changed[W:]
    last = images.clone()
    last[W - 1] = 255 - last[W - 1]
    norms = []
    for data in (images, changed, last):
        method = load_method("zero-shot", realign=STAGE)
        run(method, task_for(TinyVLM()), data)
        norms.append(np.concatenate([a.ravel() for a in (method.norms() or {}).values()]))
    np.testing.assert_array_equal(norms[0], norms[1])
    assert not np.array_equal(norms[0], norms[2])


def test_a_stream_shorter_than_the_buffer_is_realigned_on_what_is_there() -> None:
    method = load_method("zero-shot", realign=STAGE)
    found = run(method, task_for(TinyVLM()), pictures(20))
    assert found.final.all() and method.norms() is not None
    assert len(method.health()["realign_losses"]) == 3


def test_without_a_confident_label_the_encoder_stays_as_it_is() -> None:
    task = replace(task_for(TinyVLM()), anchors=np.tile(task_for(TinyVLM()).anchors[:1], (3, 1)))
    with pytest.warns(UserWarning, match="skipped"):
        found = run(load_method("kmeans", realign=STAGE), task, pictures())
    expected = run(load_method("kmeans"), task, pictures())
    np.testing.assert_array_equal(found.category, expected.category)


def test_no_epochs_leave_the_method_what_it_is() -> None:
    found = run(
        load_method("talon", realign={**STAGE, "epochs": 0}), task_for(TinyVLM()), pictures()
    )
    expected = run(load_method("talon"), task_for(TinyVLM()), pictures())
    np.testing.assert_array_equal(found.category, expected.category)


def test_l_is_estimated_from_the_pretrained_features_of_the_buffer() -> None:
    task = replace(task_for(TinyVLM()), novel=None)
    staged = opened(load_method("kmeans", realign=STAGE), task)
    pact = opened(load_method("pact", warmup=W, epochs=1), task)
    for stream in (staged, pact):
        for batch in batches(pictures(), SIZE):
            stream.session.push(batch)
    assert staged.session.estimate is not None
    assert staged.session.estimate == pact.session.estimate
    assert staged.session.method.n_novel == staged.session.estimate.novel


def test_the_configuration_is_json_and_makes_the_same_method_again() -> None:
    method = load_method("scout", words=0, realign=True)
    config = json.loads(json.dumps(method.config()))
    assert config["realign"] == Realignment().options()
    assert config == {**load_method("scout", words=0).config(), "realign": config["realign"]}
    again = load_method("scout", **config)
    assert again.config() == config
    assert (again.name, again.answers, again.trains) == ("scout", "arrival", "image LayerNorm")
    assert load_method("scout", realign=False).config() == load_method("scout").config()


def test_the_defaults_are_those_of_pact() -> None:
    pact = load_preset("paper").config()
    assert Realignment().options() == {key: pact[key] for key in Realignment().options()}


@pytest.mark.parametrize("name", ["pact", "tent++", "batclip++"])
def test_methods_that_train_the_encoder_refuse_it(name: str) -> None:
    with pytest.raises(InputError, match=r"trains the encoder itself.*leave out `realign=...`"):
        load_method(name, realign=True)


def test_what_cannot_be_used_is_explained() -> None:
    with pytest.raises(InputError, match="no option 'depth': it has warmup, epochs"):
        load_method("scout", realign={"depth": 1})
    with pytest.raises(InputError, match="realign must be True, False or options"):
        load_method("scout", realign="yes")
    with pytest.raises(InputError, match="warmup must be 2 or more, got 1"):
        load_method("scout", realign={"warmup": 1})
    with pytest.raises(InputError, match="optimiser must be one of sgd"):
        load_method("scout", realign={"optimiser": "lion"})
    with pytest.raises(InputError, match=r"embeddings.*no encoder.*Leave out `realign=...`"):
        load_method("scout", realign=True).start(task_for(None))


def test_states_with_and_without_the_stage_are_not_mixed_up() -> None:
    staged, plain = load_method("zero-shot", realign=STAGE), load_method("zero-shot")
    for method in (staged, plain):
        run(method, task_for(TinyVLM()), pictures())
    states = staged.state_dict(), plain.state_dict()
    for method, state in ((plain, states[0]), (staged, states[1])):
        method.start(task_for(TinyVLM()))
        with pytest.raises(InputError, match="another configuration"):
            method.load_state_dict(state)


def test_a_long_one_is_announced_with_how_to_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttgcd.methods.stage_one.LONG_SECONDS", 0.0)
    said: list[str] = []
    caller = Caller()
    monkeypatch.setattr(caller, "say", said.append)
    stream = opened(load_method("zero-shot", realign=STAGE), task_for(TinyVLM()), caller=caller)
    for batch in batches(pictures(), SIZE):
        stream.session.push(batch)
    (note,) = said
    assert f"{W} images, up to 3 epochs" in note and "minutes" in note
    assert "`realign=True`" in note and "`realign_depth=1`" in note
