"""The battery that every method passes: one function a promise.

Each takes ``make``, which gives a fresh method, and raises AssertionError.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from ttgcd.errors import InputError
from ttgcd.methods.base import Caller, Method
from ttgcd.storage.state import State
from ttgcd.testing.model import TinyVLM, batches, embedding_world, image_world
from ttgcd.testing.runs import (
    SIZE,
    equal,
    equal_parts,
    equal_states,
    opened,
    run,
    sound,
    summary,
    task_for,
)

Make = Callable[[], Method]


def images(count: int = 90, classes: int = 5, seed: int = 3) -> torch.Tensor:
    return image_world(count, classes, seed=seed)[0]


def constant_images(count: int = 50) -> torch.Tensor:
    return torch.full((count, 3, 8, 8), 77, dtype=torch.uint8)


def needs_images(make: Make) -> bool:
    """Whether the method refuses streams of embeddings."""
    try:
        make().start(task_for(None))
    except InputError:
        return True
    return False


def check_description(make: Make) -> None:
    """Class variables, and a configuration that is JSON and makes the same method again."""
    method = make()
    assert isinstance(method.name, str) and method.name
    assert method.answers in ("arrival", "end")
    assert method.passes >= 1
    assert method.trains in ("nothing", "image LayerNorm", "image and text LayerNorm")
    assert isinstance(method.needs_names, bool)
    config = method.config()
    assert json.loads(json.dumps(config)) == config
    assert type(method)(**config).config() == config


def check_every_sample_gets_a_final_answer(make: Make) -> None:
    method = make()
    sound(run(method, task_for(TinyVLM()), images()), method)


def check_seeded_runs_are_identical_also_on_one_object(make: Make) -> None:
    first, again = make(), make()
    data = images()
    one = run(first, task_for(TinyVLM()), data)
    np.random.seed(123)  # the global generators must not matter
    torch.manual_seed(123)
    two = run(again, task_for(TinyVLM()), data)
    three = run(first, task_for(TinyVLM()), data)
    assert equal_parts(one.parts, two.parts) and equal_parts(one.parts, three.parts)
    assert equal_states(first.state_dict(), again.state_dict())


def check_inputs_are_not_changed(make: Make) -> None:
    method, task = make(), task_for(TinyVLM())
    data, anchors = images(), task.anchors.copy()
    before = data.clone()
    run(method, task, data)
    assert torch.equal(data, before)
    assert np.array_equal(task.anchors, anchors)


def check_embeddings_work_or_are_refused(make: Make) -> None:
    data = embedding_world()
    before = data.copy()
    if needs_images(make):
        method = make()
        method.start(task_for(TinyVLM()))
        try:
            method.observe(batches(data, SIZE)[0])
        except InputError as error:
            assert "embeddings" in str(error)
            return
        raise AssertionError("a batch of embeddings was taken by a method that needs images")
    method = make()
    sound(run(method, task_for(None), data), method)
    assert np.array_equal(data, before)


def check_predict_leaves_no_trace(make: Make) -> None:
    data = batches(images(), SIZE)
    whole = run(make(), task_for(TinyVLM()), images())
    for at in (1, 4):
        method = make()
        stream = opened(method, task_for(TinyVLM()))
        for batch in data[:at]:
            stream.session.push(batch)
        before = method.state_dict()
        first, second = stream.session.predict(data[at]), stream.session.predict(data[at])
        assert equal(first, second)
        assert equal_states(before, method.state_dict())
        for batch in data[at:]:
            stream.session.push(batch)
        assert equal_parts(stream.finish(90).parts, whole.parts)


def check_predict_still_answers_after_the_end(make: Make) -> None:
    method, task = make(), task_for(TinyVLM())
    stream = opened(method, task)
    for batch in batches(images(), SIZE):
        stream.session.push(batch)
    stream.finish(90)
    later = batches(images(20, seed=9), 20)[0]
    answer = stream.session.predict(later)
    assert answer.final.all()
    other = make()
    again = opened(other, task_for(TinyVLM())).session
    again.load(method.state_dict(), stream.session.state())
    assert equal(answer, again.predict(later))


def check_state_goes_on_identically_from_any_batch(make: Make) -> None:
    """Also for a caller who cannot hand the stream over again."""
    data = images(56)
    whole = run(make(), task_for(TinyVLM()), data)
    parts = batches(data, SIZE)
    for replays in (True, False):
        for at in range(1, len(parts) + 1):
            caller = Caller()
            caller.replays = replays
            first = opened(make(), task_for(TinyVLM()), caller=caller)
            for batch in parts[:at]:
                first.session.push(batch)
            answers = list(first.recorder.parts)
            saved, own = first.session.method.state_dict(), first.session.state()
            # Only plain arrays and JSON survive a file.
            values = json.loads(json.dumps(saved.values))
            arrays = {key: np.array(array) for key, array in saved.arrays.items()}
            second = opened(make(), task_for(TinyVLM()), caller=caller)
            second.session.load(State(arrays, values), own)
            store = second.session.store
            for rows in answers:  # the caller keeps the features, not the method
                store.write(None, rows)  # type: ignore[union-attr]
            seen = values["seen"]
            assert seen in ((0, at * SIZE, len(data)) if replays else (at * SIZE, len(data)))
            for batch in batches(data, SIZE, start=seen):
                second.session.push(batch)
            later = second.finish(len(data)).parts
            expected = whole.parts[at if seen else 0 :] if seen != len(data) else whole.parts[at:]
            assert equal_parts(later, expected), f"other answers after batch {at}"
            both = summary(answers + later, len(data))
            assert np.array_equal(both.category, whole.category)


def check_a_saved_state_is_not_touched_by_going_on(make: Make) -> None:
    stream = opened(make(), task_for(TinyVLM()))
    parts = batches(images(), SIZE)
    for batch in parts[:4]:
        stream.session.push(batch)
    state = stream.session.method.state_dict()
    copies = {key: np.array(array) for key, array in state.arrays.items()}
    for batch in parts[4:]:
        stream.session.push(batch)
    assert all(np.array_equal(copies[key], array) for key, array in state.arrays.items())


def check_a_state_of_another_configuration_is_refused(make: Make) -> None:
    method = make()
    method.start(task_for(TinyVLM()))
    state = method.state_dict()
    state.values["config"] = {"something": "else"}
    try:
        method.load_state_dict(state)
    except InputError as error:
        assert "configuration" in str(error)
        return
    raise AssertionError("a state of another configuration was taken")


def check_the_shared_model_is_never_changed(make: Make) -> None:
    vlm = TinyVLM()
    pretrained = vlm.all_weights()
    run(make(), task_for(vlm), images())
    assert all(np.array_equal(pretrained[key], w) for key, w in vlm.all_weights().items())
    assert not any(
        p.requires_grad or p.grad is not None
        for tower in vlm.towers.values()
        for p in tower.parameters()
    )


def check_only_declared_parameters_are_trained(make: Make) -> None:
    vlm = TinyVLM()
    pretrained = vlm.all_weights()
    method = make()
    run(method, task_for(vlm), images())
    changed = {
        key
        for copy in vlm.made
        for key, weight in copy.all_weights().items()
        if not np.array_equal(weight, pretrained[key])
    }
    norms = {
        tower: {f"{tower}/{key}" for key in vlm.trainable().norm_parameters(tower)}
        for tower in ("image", "text")
    }
    allowed: dict[str, set[str]] = {
        "nothing": set(),
        "image LayerNorm": norms["image"],
        "image and text LayerNorm": norms["image"] | norms["text"],
    }
    assert changed <= allowed[method.trains]


def check_interleaved_streams_equal_lone_ones(make: Make) -> None:
    """Two streams on one model, batch by batch in turn."""
    worlds = [images(80, seed=3), images(96, seed=4)]
    lone = [run(make(), task_for(TinyVLM(), seed=i), data) for i, data in enumerate(worlds)]
    vlm = TinyVLM()
    together = [opened(make(), task_for(vlm, seed=i)) for i in range(2)]
    for first, second in zip(batches(worlds[0], SIZE), batches(worlds[1], SIZE)):
        together[0].session.push(first)
        together[1].session.push(second)
    together[1].session.push(batches(worlds[1], SIZE)[5])
    for stream, alone, data in zip(together, lone, worlds):
        assert equal_parts(stream.finish(len(data)).parts, alone.parts)


def check_one_image_at_a_time_equals_a_folder(make: Make) -> None:
    data = images(70)
    whole = run(make(), task_for(TinyVLM()), data)
    stream = opened(make(), task_for(TinyVLM()), size=SIZE)
    for batch in batches(data, 1):
        stream.session.push(batch)
    assert equal_parts(stream.finish(len(data)).parts, whole.parts)


def check_the_number_of_novel_categories_may_be_unknown(make: Make) -> None:
    method = make()
    result = run(method, task_for(TinyVLM(), novel=None), images(120))
    sound(result, method)


def check_memory_does_not_grow_with_the_stream(make: Make) -> None:
    """What is remembered of a stream twice as long is not much more. Methods that answer at the
    end keep the stream by their nature."""
    method = make()
    if method.answers == "end":
        return
    sizes = []
    for count in (400, 800):
        stream = opened(method, task_for(TinyVLM()))
        for batch in batches(images(count), SIZE):
            stream.session.push(batch)
        sizes.append(sum(array.nbytes for array in method.state_dict().arrays.values()))
    assert sizes[1] <= 1.25 * sizes[0] + 4096, f"the state grew from {sizes[0]} to {sizes[1]} bytes"


def check_health_is_json(make: Make) -> None:
    method = make()
    method.start(task_for(TinyVLM()))
    json.dumps(method.health())
    run(method, task_for(TinyVLM()), images())
    json.dumps(method.health())


def check_odd_numbers_of_classes(make: Make) -> None:
    for known, novel in [(3, 2), (1, 2), (3, 0), (1, 0), (2, 300)]:
        method = make()
        sound(run(method, task_for(TinyVLM(), known, novel), images(70)), method)


def check_without_names_it_groups_or_says_why_not(make: Make) -> None:
    worlds = ((TinyVLM(), images(70)), (None, embedding_world(70)))
    for vlm, data in worlds[:1] if needs_images(make) else worlds:
        for novel in (3, 1, None):
            method, task = make(), task_for(vlm, 0, novel)
            if method.needs_names:
                try:
                    method.start(task)
                except InputError as error:
                    assert "names" in str(error)
                    continue
                raise AssertionError("a method that needs names began without")
            sound(run(method, task, data), method)
            again = make()
            again.start(task)
            again.load_state_dict(method.state_dict())
            ready = batches(data, SIZE)[0]
            if ready.images is not None:
                ready = replace(ready, features=task.encoder(method.norms())(ready.images))
            assert equal(method.predict(ready), again.predict(ready))


def check_adversarial_images(make: Make) -> None:
    for data, size in (
        (constant_images(), 16),
        (images(17), 16),  # the last batch is a single sample
        (images(6), 1),  # only single samples
        (images(3), 16),  # a stream shorter than anything
        (torch.cat([constant_images(30), images(30)]), 16),
        (torch.cat([images(30), constant_images(30)]), 60),
    ):
        method = make()
        sound(run(method, task_for(TinyVLM()), data, size), method)


def check_adversarial_embeddings(make: Make) -> None:
    if needs_images(make):
        return
    task = task_for(None)
    equal_rows = np.repeat(embedding_world(1), 60, axis=0)
    all_known = task.anchors[np.arange(60) % 3]
    opposite = -all_known
    for data in (equal_rows, all_known, opposite, np.concatenate([all_known, opposite])):
        method = make()
        sound(run(method, task, np.ascontiguousarray(data)), method)


def check_an_empty_stream_ends_quietly(make: Make) -> None:
    stream = opened(make(), task_for(TinyVLM()))
    assert len(stream.session.finish()) == 0


def check_what_is_final_is_not_revised(make: Make) -> None:
    method = make()
    parts = run(method, task_for(TinyVLM()), images()).parts
    settled: set[int] = set()
    for part in parts:
        assert settled.isdisjoint(part.index.tolist()), "an answer called final was revised"
        settled |= {int(i) for i in part.index[part.final]}
    if method.answers == "end":
        assert any(not part.final.all() for part in parts[:-1]), "nothing was provisional"


def check_named_categories_keep_their_ids(make: Make) -> None:
    """What a method makes of a user's names is part of its state, and ids stay what they are."""
    task, data = task_for(TinyVLM()), images()
    before = make()
    run(before, task, data)
    state, found = before.state_dict(), [category.id for category in before.categories()]
    texts = task.anchors[::-1]
    named = {c: texts[at] for at, c in enumerate(i for i in found if i >= task.n_known)}
    named = dict(list(named.items())[: len(texts)])
    first, second = make(), make()
    first.start(task)
    first.load_state_dict(state)
    first.promote(named)
    kept = first.state_dict()
    second.start(task)
    arrays = {key: np.array(array) for key, array in kept.arrays.items()}
    second.load_state_dict(State(arrays, json.loads(json.dumps(kept.values))))
    assert [category.id for category in second.categories()][: len(found)] == found
    for batch in batches(data, SIZE)[:2]:
        assert batch.images is not None
        ready = replace(batch, features=task.encoder(first.norms())(batch.images))
        assert np.array_equal(first.predict(ready).category, second.predict(ready).category)


CHECKS: tuple[Callable[[Make], None], ...] = tuple(
    value for name, value in list(globals().items()) if name.startswith("check_")
)
