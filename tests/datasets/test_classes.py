"""Class names and splits."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ttgcd import data
from ttgcd.datasets.classes import (
    class_names,
    folder_names,
    load_split,
    make_split,
    split_by_names,
    split_record,
)
from ttgcd.errors import InputError

SIZES = {"cifar10": 10, "cifar100": 100, "imagenet": 1000, "cub": 200, "domainnet": 345}
KNOWN = {"cifar10": 5, "cifar100": 50, "imagenet": 500, "cub": 100, "domainnet": 172}


@pytest.mark.parametrize("dataset", SIZES)
def test_names_are_complete_and_readable(dataset: str) -> None:
    names = class_names(dataset)
    assert len(names) == SIZES[dataset]
    assert all(name == name.strip() and name and "_" not in name for name in names)
    doubled = {name for name in names if names.count(name) > 1}
    assert doubled == ({"missile", "sunglasses"} if dataset == "imagenet" else set())


def test_imagenet_names_can_be_made_distinct() -> None:
    published, distinct = class_names("imagenet"), class_names("imagenet", distinct=True)
    assert len(set(distinct)) == 1000
    changed = {i: name for i, name in enumerate(distinct) if name != published[i]}
    assert changed == {744: "projectile", 836: "sunglass"}
    wnids = folder_names("imagenet_wnids")
    assert list(wnids) == sorted(set(wnids)) and len(wnids) == 1000
    assert (wnids[744], wnids[836]) == ("n04008634", "n04355933")


def test_domainnet_order_ignores_case() -> None:
    names = folder_names("domainnet")
    assert list(names) != sorted(names)  # what a folder listing would give
    at = names.index("television")
    there = ("The_Eiffel_Tower", "The_Great_Wall_of_China", "The_Mona_Lisa", "tiger")
    assert names[at + 3 : at + 7] == there
    assert class_names("domainnet")[at + 3] == "The Eiffel Tower"


def test_cub_names_lose_their_numbers() -> None:
    assert class_names("cub")[0] == "Black footed Albatross"


@pytest.mark.parametrize("dataset", SIZES)
def test_stored_splits_regenerate(dataset: str) -> None:
    stored = json.loads(data.path("splits", f"{dataset}.json").read_text("utf-8"))
    names = class_names(dataset)
    order = np.random.RandomState(stored["seed"]).permutation(len(names)).tolist()
    assert stored["known_ids"] == order[: KNOWN[dataset]]
    assert stored["novel_ids"] == order[KNOWN[dataset] :]
    split = load_split(dataset)
    assert split == make_split(len(names), stored["seed"])
    assert stored == split_record(dataset, names, split, stored["seed"])


def test_categories_put_known_classes_first() -> None:
    split = make_split(7, seed=3)
    categories = split.categories()
    assert [categories[i] for i in split.known + split.novel] == list(range(7))


def test_split_by_names() -> None:
    split = split_by_names(("a", "b", "c"), ("c", "a"))
    assert (split.known, split.novel) == ((2, 0), (1,))
    with pytest.raises(InputError, match="'d'"):
        split_by_names(("a", "b"), ("d",))
    with pytest.raises(InputError, match="twice"):
        split_by_names(("a", "b"), ("a", "a"))
