"""The battery that every registered method passes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.methods.registry import METHODS, load_method, method_class
from ttgcd.testing.checks import CHECKS

#: Short warm-ups, small heads: the same code in less time.
SMALL: dict[str, dict[str, Any]] = {
    "scout": {"warmup": 40, "reservoir": 64, "restarts": 2, "fresh_restarts": 1, "words": 30},
    "pact": {"warmup": 40, "epochs": 2, "realign_batch_size": 16},
    "simgcd++": {"warmup": 40, "hidden": 8},
    "hilo++": {"warmup": 40},
    "ttd": {"warmup": 40},
    "talon": {"warmup": 40},
    "hdbscan": {"min_cluster_size": 3},
}


@pytest.fixture(autouse=True)
def few_threads():
    """Small tensors: threads would only cost."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        # Few distinct samples are the point of several checks.
        warnings.simplefilter("ignore", UserWarning)
        yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_keeps_the_contract(name: str, check) -> None:
    check(lambda: load_method(name, **SMALL.get(name, {})))


#: The stage in front of one method of every kind: fits, prototypes, images, the end of the stream.
STAGED = ("scout", "talon", "simgcd++", "kmeans", "zero-shot")
STAGE = {"warmup": 24, "epochs": 2, "realign_batch_size": 16}
#: Its configuration goes through ``load_method``: tests/methods/test_realign_first.py.
STAGED_CHECKS = [check for check in CHECKS if check.__name__ != "check_description"]


@pytest.mark.parametrize("check", STAGED_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", STAGED)
def test_a_method_behind_the_realignment_keeps_the_contract(name: str, check) -> None:
    check(lambda: load_method(name, **SMALL.get(name, {}), realign=STAGE))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_found_under_its_own_name(name: str) -> None:
    assert method_class(name).name == name


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_option_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match="no_such_option"):
        load_method(name, no_such_option=1)


def test_only_methods_that_say_so_train_the_encoder() -> None:
    assert {name for name in METHODS if method_class(name).trains != "nothing"} == {
        "pact", "tent++", "batclip++", "sat++", "ostta++", "unient++"
    }  # fmt: skip
