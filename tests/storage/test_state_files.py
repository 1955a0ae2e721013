"""States on disk: they come back as they were, or are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttgcd.errors import InputError
from ttgcd.storage.state import State
from ttgcd.storage.state_files import load_state, save_state


def example() -> State:
    arrays = {
        "evidence": np.array([1.5, np.inf, 0.0]),
        "known_prototypes": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "novel_prototypes": np.zeros((0, 3), np.float32),
        "optimiser/0/step": np.array(7.0, np.float32),
        "final": np.array([True, False]),
    }
    return State(arrays, {"seen": 3, "losses": [0.5, float("inf")], "name": "größe \u2028"})


def test_a_state_comes_back_as_it_was(tmp_path):
    state = example()
    save_state(tmp_path, state)
    back = load_state(tmp_path)
    assert back.values == state.values
    assert back.arrays.keys() == state.arrays.keys()
    for name, array in state.arrays.items():
        assert back.arrays[name].dtype == array.dtype
        assert back.arrays[name].shape == array.shape
        np.testing.assert_array_equal(back.arrays[name], array)


def test_equal_states_give_equal_bytes(tmp_path):
    state = example()
    save_state(tmp_path / "a", state)
    turned = State(dict(reversed(state.arrays.items())), dict(reversed(state.values.items())))
    save_state(tmp_path / "b", turned)
    for name in ("state.safetensors", "state.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_other_programs_can_read_it(tmp_path):
    from safetensors import safe_open

    save_state(tmp_path, example())
    with safe_open(tmp_path / "state.safetensors", "np") as file:
        assert set(file.keys()) == set(example().arrays)
    # Strictly JSON: no NaN or Infinity literals.
    text = (tmp_path / "state.json").read_text("utf-8")
    record = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert record["values"]["seen"] == 3


def test_a_newer_format_is_refused(tmp_path):
    save_state(tmp_path, example())
    path = tmp_path / "state.json"
    path.write_text(path.read_text("utf-8").replace('"version": 1', '"version": 2'), "utf-8")
    with pytest.raises(InputError, match="version 2"):
        load_state(tmp_path)


def test_arrays_of_another_state_are_refused(tmp_path):
    save_state(tmp_path / "a", example())
    save_state(tmp_path / "b", State({"x": np.ones(3)}, {"seen": 0}))
    (tmp_path / "b/state.safetensors").rename(tmp_path / "a/state.safetensors")
    with pytest.raises(InputError, match="checksum"):
        load_state(tmp_path / "a")


def test_a_missing_state_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        load_state(tmp_path)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(["state.json", "state.safetensors"]),
    at=st.integers(0, 10_000),
    replacement=st.binary(max_size=8),
    cut=st.integers(0, 20),
)
def test_no_damage_goes_unnoticed(tmp_path_factory, name, at, replacement, cut):
    folder = tmp_path_factory.mktemp("state")
    save_state(folder, example())
    data = (folder / name).read_bytes()
    at %= len(data)
    mutated = data[:at] + replacement + data[at + cut :]
    (folder / name).write_bytes(mutated)
    if mutated == data:
        return
    try:
        values = load_state(folder).values
    except InputError:
        return
    # Only what JSON does not distinguish, such as white space, may pass.
    assert name == "state.json"
    assert values == example().values
