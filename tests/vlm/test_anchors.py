from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.vlm.anchors import cache_folder, check_names, check_templates, text_anchors

NAMES = ("cat", "dog", "maple tree")
TEMPLATES = ("a photo of a {}.", "art of the {}.", "{}")


class CountingVLM:
    """Unit features drawn from a hash of the text; counts what it encodes."""

    dim = 8

    def __init__(self, fingerprint: str = "f") -> None:
        self.fingerprint = fingerprint
        self.encoded: list[str] = []

    def encode_texts(self, texts, normalize=True):
        assert normalize
        self.encoded += texts
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) for text in texts]
        rows = np.stack([np.random.default_rng(seed).normal(size=8) for seed in seeds])
        return torch.tensor(rows / np.linalg.norm(rows, axis=1, keepdims=True)).float()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "anchors"


def test_templates_are_averaged_on_the_sphere():
    vlm = CountingVLM()
    anchors = text_anchors(vlm, NAMES, TEMPLATES, cache=False)
    assert anchors.shape == (3, 8)
    assert anchors.dtype == np.float32
    for row, name in zip(anchors, NAMES):
        mean = sum(vlm.encode_texts([t.replace("{}", name)])[0].numpy() for t in TEMPLATES) / 3
        assert np.allclose(row, mean / np.linalg.norm(mean), atol=1e-6)


def test_the_default_is_a_photo_with_its_full_stop():
    vlm = CountingVLM()
    text_anchors(vlm, ["cat"])
    assert vlm.encoded == ["a photo of a cat."]


def test_many_names_keep_their_order_across_batches():
    vlm = CountingVLM()
    names = [f"class {i}" for i in range(600)]
    anchors = text_anchors(vlm, names, ["{}"], cache=False)
    assert np.allclose(anchors[599], vlm.encode_texts(["class 599"])[0], atol=1e-6)
    assert np.allclose(anchors[256], vlm.encode_texts(["class 256"])[0], atol=1e-6)


def test_braces_in_a_name_are_kept():
    vlm = CountingVLM()
    text_anchors(vlm, ["{x} {}"], ["the {}"], cache=False)
    assert vlm.encoded == ["the {x} {}"]


def test_the_second_call_reads_the_cache(cache):
    first = text_anchors(CountingVLM(), NAMES)
    again = CountingVLM()
    assert np.array_equal(text_anchors(again, NAMES), first)
    assert again.encoded == []
    assert [path.suffix for path in cache.iterdir()] == [".safetensors"]


@pytest.mark.parametrize(
    "change",
    [
        {"vlm": CountingVLM("another model")},
        {"names": ("dog", "cat", "maple tree")},
        {"names": ("cat", "dog maple", "tree")},
        {"templates": ("a {}",)},
        {"templates": TEMPLATES[::-1]},
    ],
)
def test_anything_else_is_encoded_anew(change):
    text_anchors(CountingVLM(), NAMES, TEMPLATES)
    arguments = {"vlm": CountingVLM(), "names": NAMES, "templates": TEMPLATES, **change}
    text_anchors(**arguments)
    assert arguments["vlm"].encoded


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "nan", "shape"])
def test_a_damaged_entry_is_ignored_and_rewritten(cache, damage):
    from safetensors.numpy import save

    expected = text_anchors(CountingVLM(), NAMES)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[:-5],
            "noise": b"\xff" * 100,
            "empty": b"",
            "nan": save({"anchors": np.full((3, 8), np.nan, np.float32)}),
            "shape": save({"anchors": expected[:2]}),
        }[damage]
    )
    vlm = CountingVLM()
    assert np.array_equal(text_anchors(vlm, NAMES), expected)
    assert vlm.encoded
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TTGCD_CACHE", str(tmp_path / "file"))
    assert text_anchors(CountingVLM(), NAMES).shape == (3, 8)


def test_a_failed_write_leaves_no_half_file(cache, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    assert text_anchors(CountingVLM(), NAMES).shape == (3, 8)
    assert list(cache.iterdir()) == []


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("TTGCD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "ttgcd"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "ttgcd"


def test_duplicate_names_are_named():
    with pytest.raises(InputError, match=r"duplicate class names: dog, Cat;"):
        check_names(["cat", "dog", "dog ", "Cat", "owl"])
    assert check_names(["a", "a"], allow_duplicates=True) == ("a", "a")


def test_empty_names_are_named_by_position():
    with pytest.raises(InputError, match="position 2, 4"):
        check_names(["cat", "", "dog", " \t"])
    with pytest.raises(InputError, match="no class names"):
        check_names([])
    with pytest.raises(InputError, match="must be a list"):
        check_names("cat")


def test_blanks_around_a_name_do_not_matter():
    assert check_names([" maple   tree\n"]) == ("maple tree",)


@pytest.mark.parametrize("templates", [(), ("a photo",), ("a {}", "a photo of a { }")])
def test_templates_need_a_place_for_the_name(templates):
    with pytest.raises(InputError, match="template"):
        check_templates(templates)


def test_anchors_of_a_wrong_list_are_not_computed():
    vlm = CountingVLM()
    with pytest.raises(InputError):
        text_anchors(vlm, ["cat", "cat"])
    with pytest.raises(InputError):
        text_anchors(vlm, ["cat"], ["no place"])
    assert vlm.encoded == []
