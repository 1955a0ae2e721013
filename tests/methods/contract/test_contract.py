"""The battery that every registered method passes."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch

from tests.fakes import FakeVLM, batches
from tests.methods.contract.checks import (
    ALL,
    EMBEDDINGS,
    NEEDS_IMAGES,
    embeddings,
    equal,
    equal_states,
    images,
    make,
    run,
    sound,
    summary,
    task_for,
)
from ttgcd.errors import InputError
from ttgcd.methods.registry import load_method, method_class
from ttgcd.storage.state import State


@pytest.fixture(autouse=True)
def few_threads():
    """Small tensors: threads would only cost."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        # Few distinct samples are the point of several checks.
        warnings.filterwarnings("ignore", message="only .* novel prototypes could be seeded")
        yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ALL)
def test_the_class_says_what_it_is(name: str) -> None:
    cls = method_class(name)
    assert cls.name == name
    assert cls.answers in ("arrival", "end")
    assert cls.passes == 1
    assert cls.trains in ("nothing", "image LayerNorm", "image and text LayerNorm")
    config = load_method(name).config()
    assert load_method(name, **config).config() == config
    assert json.loads(json.dumps(config)) == config


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_option_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match="no_such_option"):
        load_method(name, no_such_option=1)


@pytest.mark.parametrize("name", ALL)
def test_every_sample_gets_a_final_answer(name: str) -> None:
    method, task = make(name), task_for(FakeVLM())
    sound(run(method, task, images()), method, task)


@pytest.mark.parametrize("name", ALL)
def test_seeded_runs_are_identical_also_on_one_object(name: str) -> None:
    first, again = make(name), make(name)
    data = images()
    one = run(first, task_for(FakeVLM()), data)
    # The global generators must not matter.
    np.random.seed(123)
    torch.manual_seed(123)
    two = run(again, task_for(FakeVLM()), data)
    three = run(first, task_for(FakeVLM()), data)
    for other in (two, three):
        assert len(one.parts) == len(other.parts)
        assert all(equal(a, b) for a, b in zip(one.parts, other.parts))
    assert equal_states(first.state_dict(), again.state_dict())


@pytest.mark.parametrize("name", ALL)
def test_inputs_are_not_changed(name: str) -> None:
    method, task = make(name), task_for(FakeVLM())
    data, anchors = images(), task.anchors.copy()
    before = data.clone()
    run(method, task, data)
    assert torch.equal(data, before)
    assert np.array_equal(task.anchors, anchors)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings_work_without_a_model_and_are_not_changed(name: str) -> None:
    method, task = make(name), task_for(None)
    data = embeddings()
    before = data.copy()
    sound(run(method, task, data), method, task)
    assert np.array_equal(data, before)


@pytest.mark.parametrize("name", NEEDS_IMAGES)
def test_training_methods_refuse_embeddings(name: str) -> None:
    with pytest.raises(InputError, match="embeddings"):
        make(name).start(task_for(None))
    method = make(name)
    method.start(task_for(FakeVLM()))
    with pytest.raises(InputError, match="embeddings"):
        method.observe(batches(embeddings(), 16)[0])


@pytest.mark.parametrize("at", [1, 4])
@pytest.mark.parametrize("name", ALL)
def test_predict_leaves_no_trace(name: str, at: int) -> None:
    task = task_for(FakeVLM())
    method, plain = make(name), make(name)
    data = batches(images(), 16)
    method.start(task)
    for batch in data[:at]:
        method.observe(batch)
    before, weights = method.state_dict(), task.vlm.all_weights()
    first, second = method.predict(data[at]), method.predict(data[at])
    assert equal(first, second)
    assert equal_states(before, method.state_dict())
    assert all(np.array_equal(weights[k], v) for k, v in task.vlm.all_weights().items())
    rest = [method.observe(batch) for batch in data[at:]] + [method.finish()]
    undisturbed = run(plain, task_for(FakeVLM()), images())
    assert all(equal(a, b) for a, b in zip(rest, undisturbed.parts[at:]))


@pytest.mark.parametrize("name", ALL)
def test_predict_still_answers_after_the_end(name: str) -> None:
    method, task = make(name), task_for(FakeVLM())
    run(method, task, images())
    state = method.state_dict()
    answer = method.predict(batches(images(20, seed=9), 20)[0])
    assert answer.final.all()
    other = make(name)
    other.start(task_for(FakeVLM()))
    other.load_state_dict(state)
    assert equal(answer, other.predict(batches(images(20, seed=9), 20)[0]))


@pytest.mark.parametrize("name", ALL)
def test_state_goes_on_identically_from_any_batch(name: str) -> None:
    data = images(56)
    whole = run(make(name), task_for(FakeVLM()), data)
    parts = batches(data, 16)
    for at in range(1, len(parts) + 1):
        first = make(name)
        first.start(task_for(FakeVLM()))
        answers = [first.observe(batch) for batch in parts[:at]]
        saved = first.state_dict()
        # Only plain arrays and JSON survive a file.
        values = json.loads(json.dumps(saved.values))
        arrays = {key: np.array(array) for key, array in saved.arrays.items()}
        second = make(name)
        second.start(task_for(FakeVLM()))
        second.load_state_dict(State(arrays, values))
        seen = values["seen"]
        assert seen in (0, at * 16, len(data))
        later = [second.observe(b) for b in batches(data, 16, start=seen)] + [second.finish()]
        expected = whole.parts[at if seen else 0 :]
        assert len(later) == len(expected)
        assert all(equal(a, b) for a, b in zip(later, expected)), f"after batch {at}"
        both = summary(answers + later, len(data))
        assert np.array_equal(both.category, whole.category)


@pytest.mark.parametrize("name", ALL)
def test_a_saved_state_is_not_touched_by_going_on(name: str) -> None:
    method = make(name)
    method.start(task_for(FakeVLM()))
    parts = batches(images(), 16)
    for batch in parts[:4]:
        method.observe(batch)
    state = method.state_dict()
    copies = {key: np.array(array) for key, array in state.arrays.items()}
    for batch in parts[4:]:
        method.observe(batch)
    assert all(np.array_equal(copies[key], array) for key, array in state.arrays.items())


@pytest.mark.parametrize("name", [name for name in ALL if name != "zero-shot"])
def test_a_state_of_another_configuration_is_refused(name: str) -> None:
    method = make(name)
    method.start(task_for(FakeVLM()))
    state = method.state_dict()
    state.values["config"] = {"something": "else"}
    with pytest.raises(InputError, match="configuration"):
        method.load_state_dict(state)


@pytest.mark.parametrize("name", ALL)
def test_start_restores_the_encoder_bit_for_bit(name: str) -> None:
    vlm = FakeVLM()
    pretrained = vlm.all_weights()
    method = make(name)
    run(method, task_for(vlm), images())
    method.start(task_for(vlm))
    assert all(np.array_equal(pretrained[key], w) for key, w in vlm.all_weights().items())
    assert not any(
        p.requires_grad or p.grad is not None
        for tower in vlm.towers.values()
        for p in tower.parameters()
    )


@pytest.mark.parametrize("name", ALL)
def test_only_declared_parameters_change(name: str) -> None:
    vlm = FakeVLM()
    pretrained = vlm.all_weights()
    method = make(name)
    run(method, task_for(vlm), images())
    changed = {
        key for key, w in vlm.all_weights().items() if not np.array_equal(w, pretrained[key])
    }
    norms = {
        tower: {f"{tower}/{key}" for key in vlm.norm_parameters(tower)}
        for tower in ("image", "text")
    }
    allowed = {
        "nothing": set(),
        "image LayerNorm": norms["image"],
        "image and text LayerNorm": norms["image"] | norms["text"],
    }[method.trains]
    assert changed <= allowed
    assert bool(changed) == (method.trains != "nothing")


@pytest.mark.parametrize("name", ALL)
def test_health_is_json(name: str) -> None:
    method = make(name)
    method.start(task_for(FakeVLM()))
    json.dumps(method.health())
    run(method, task_for(FakeVLM()), images())
    json.dumps(method.health())


def constant_images(count: int = 50) -> torch.Tensor:
    return torch.full((count, 3, 8, 8), 77, dtype=torch.uint8)


@pytest.mark.parametrize("known,novel", [(3, 2), (1, 2), (3, 0), (1, 0), (2, 300)])
@pytest.mark.parametrize("name", ALL)
def test_odd_numbers_of_classes(name: str, known: int, novel: int) -> None:
    method, task = make(name), task_for(FakeVLM(), known, novel)
    sound(run(method, task, images(70)), method, task)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "data,size",
    [
        (constant_images(), 16),
        (images(17), 16),  # the last batch is a single sample
        (images(6), 1),  # only single samples
        (images(3), 16),  # a stream shorter than anything
        (torch.cat([constant_images(30), images(30)]), 16),
        (torch.cat([images(30), constant_images(30)]), 60),
    ],
    ids=["constant", "single last", "single", "short", "constant first", "constant last"],
)
def test_adversarial_images(name: str, data: torch.Tensor, size: int) -> None:
    method, task = make(name), task_for(FakeVLM())
    sound(run(method, task, data, size), method, task)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_adversarial_embeddings(name: str) -> None:
    task = task_for(None)
    equal_rows = np.repeat(embeddings(1), 60, axis=0)
    all_known = task.anchors[np.arange(60) % 3]
    opposite = -all_known
    for data in (equal_rows, all_known, opposite, np.concatenate([all_known, opposite])):
        method = make(name)
        sound(run(method, task, np.ascontiguousarray(data)), method, task)


@pytest.mark.parametrize("name", ALL)
def test_an_empty_stream_ends_quietly(name: str) -> None:
    method = make(name)
    method.start(task_for(FakeVLM()))
    assert len(method.finish()) == 0


@pytest.mark.parametrize("name", [n for n in ALL if method_class(n).answers == "end"])
def test_end_methods_say_what_is_provisional(name: str) -> None:
    method, task = make(name), task_for(FakeVLM())
    result = run(method, task, images())
    on_arrival = result.parts[:-1]
    assert any(not part.final.all() for part in on_arrival)
    # What is called final on arrival is not revised at the end.
    said = {int(i) for part in on_arrival for i in part.index[part.final]}
    assert said.isdisjoint(result.parts[-1].index.tolist())
