from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
from safetensors.torch import load_file, save_file

from tests.vlm.checkpoints import write_clip, write_json, write_open_clip
from ttgcd.errors import InputError
from ttgcd.vlm import load_vlm
from ttgcd.vlm.checkpoint import find_checkpoint

REPO = "someone/some-clip"


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An empty Hugging Face cache; the network is out of reach, whatever the machine has."""
    import huggingface_hub.constants as constants

    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return cache


def cache_snapshot(cache, commit: str, ref: str):
    """The folders huggingface_hub keeps: refs/<name> holds a commit, snapshots/<commit> files."""
    root = cache / ("models--" + REPO.replace("/", "--"))
    (root / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
    (root / "refs" / ref).write_text(commit)
    snapshot = root / "snapshots" / commit
    snapshot.mkdir(parents=True)
    return snapshot


def test_a_hub_id_in_the_cache_loads_offline(hub_cache):
    write_clip(cache_snapshot(hub_cache, "a" * 40, "main"))
    vlm = load_vlm(REPO)
    assert vlm.name == REPO
    assert load_vlm(f"hf-hub:{REPO}").fingerprint == vlm.fingerprint


def test_weights_that_the_hub_keeps_in_a_pull_request_are_found_in_the_cache(hub_cache):
    main = write_clip(cache_snapshot(hub_cache, "a" * 40, "main"))
    converted = cache_snapshot(hub_cache, "b" * 40, "refs/pr/3")
    shutil.move(main / "model.safetensors", converted / "model.safetensors")
    assert find_checkpoint(REPO).weights == (converted / "model.safetensors",)
    assert load_vlm(REPO).dim == 16


@pytest.mark.parametrize("name", [REPO, "openai/clip-vit-base-patch16"])
def test_an_unreachable_hub_names_the_offline_ways(hub_cache, name):
    with pytest.raises(InputError) as caught:
        load_vlm(name)
    message = str(caught.value)
    assert "\n" not in message
    for part in (name, "cannot be reached", "model=PATH", "cache", "model=mini"):
        assert part in message


def test_a_cut_network_fails_quickly(tmp_path):
    """Not offline by setting: the endpoint refuses connections, as behind a firewall."""
    code = (
        "from ttgcd.vlm.checkpoint import find_checkpoint\n"
        "from ttgcd.errors import InputError\n"
        "try: find_checkpoint('someone/some-clip')\n"
        "except InputError as error: print(error)\n"
    )
    environment = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    environment.pop("HF_HUB_OFFLINE", None)
    # The limit is there to fail on minutes of retries, not to measure.
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "cannot be reached" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["./nowhere", "nowhere", "/no/such/folder", "", "a/b/c"])
def test_neither_folder_nor_hub_id(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / ".." if name == "" else tmp_path)
    with pytest.raises(InputError, match="model"):
        load_vlm(name)


def test_a_file_is_not_a_checkpoint(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="give the folder"):
        load_vlm(str(tmp_path / "model.safetensors"))


def test_a_folder_without_checkpoint(tmp_path):
    with pytest.raises(InputError, match=r"expected config\.json"):
        load_vlm(str(tmp_path))


def test_pickled_weights_are_never_read(tmp_path):
    folder = write_clip(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin.*safetensors"):
        load_vlm(str(folder))


def test_sharded_weights(tmp_path):
    folder = write_clip(tmp_path)
    whole = load_vlm(str(folder))
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    index = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        shard = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / shard)
        index |= dict.fromkeys(part, shard)
    write_json(folder / "model.safetensors.index.json", {"weight_map": index})
    sharded = load_vlm(str(folder))
    assert sharded.encode_texts(["a"]).equal(whole.encode_texts(["a"]))
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(InputError, match="no checkpoint"):
        load_vlm(str(folder))


def test_a_shard_index_cannot_point_outside_the_folder(tmp_path):
    folder = write_clip(tmp_path / "model")
    shutil.move(folder / "model.safetensors", tmp_path / "outside.safetensors")
    write_json(
        folder / "model.safetensors.index.json",
        {"weight_map": {"logit_scale": "../outside.safetensors"}},
    )
    with pytest.raises(InputError, match="no checkpoint"):
        load_vlm(str(folder))


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"{}"])
def test_damaged_weights(tmp_path, content):
    folder = write_clip(tmp_path)
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read model\.safetensors"):
        load_vlm(str(folder))


@pytest.mark.parametrize("content", ["", "{", "[]", "\udcff"])
def test_damaged_config(tmp_path, content):
    folder = write_clip(tmp_path)
    (folder / "config.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=r"config\.json"):
        load_vlm(str(folder))


@pytest.mark.parametrize(
    ("name", "section", "change"),
    [
        ("config.json", "vision_config", {"hidden_act": "nonsense"}),
        ("config.json", "text_config", {"hidden_size": "wide"}),
        ("config.json", "vision_config", {"num_attention_heads": 0}),
        ("config.json", "vision_config", {"stem": {"type": "unheard of"}}),
        ("preprocessor_config.json", None, {"image_mean": [0.5, 0.5]}),
        ("preprocessor_config.json", None, {"size": "large"}),
        ("tokenizer.json", None, {"model": None}),
    ],
)
def test_settings_that_make_no_sense_are_one_line(tmp_path, name, section, change):
    folder = write_clip(tmp_path)
    content = json.loads((folder / name).read_text())
    (content[section] if section else content).update(change)
    write_json(folder / name, content)
    with pytest.raises(InputError) as caught:
        load_vlm(str(folder))
    assert "\n" not in str(caught.value)


def test_no_tokenizer(tmp_path):
    folder = write_open_clip(tmp_path)
    for name in ("tokenizer.json", "vocab.json", "merges.txt"):
        (folder / name).unlink()
    with pytest.raises(InputError, match="no tokenizer"):
        load_vlm(str(folder))


def test_vocabulary_and_merges_serve_without_tokenizer_json(tmp_path):
    folder = write_clip(tmp_path)
    expected = load_vlm(str(folder)).encode_texts(["a photo of a cat."])
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    assert load_vlm(str(folder)).encode_texts(["a photo of a cat."]).equal(expected)


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    folder = write_clip(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["eos_token_id"] = 5
    write_json(folder / "config.json", config)
    with pytest.raises(InputError, match="end token 5"):
        load_vlm(str(folder))


def test_the_fingerprint_follows_weights_and_config_but_not_the_place(tmp_path):
    folder = write_clip(tmp_path / "a")
    first = find_checkpoint(str(folder)).fingerprint()
    copy = shutil.copytree(folder, tmp_path / "b")
    (copy / "README.md").write_text("anything")
    assert find_checkpoint(str(copy)).fingerprint() == first
    other = write_clip(tmp_path / "c", seed=1)
    assert find_checkpoint(str(other)).fingerprint() != first
    config = json.loads((copy / "config.json").read_text())
    config["vision_config"]["hidden_act"] = "gelu"
    write_json(copy / "config.json", config)
    assert find_checkpoint(str(copy)).fingerprint() != first


def test_the_embedded_model_goes_the_same_way(tmp_path, monkeypatch):
    folder = write_clip(tmp_path / "mini")
    monkeypatch.setattr("ttgcd.data.path", lambda *parts: tmp_path.joinpath(*parts))
    vlm = load_vlm("mini")
    assert vlm.name == "mini"
    assert vlm.fingerprint == load_vlm(str(folder)).fingerprint


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub whose main branch holds pickled weights and whose pull requests are in `requests`."""
    import huggingface_hub

    whole = write_clip(tmp_path / "whole")
    main = shutil.copytree(whole, tmp_path / "main")
    (main / "model.safetensors").rename(main / "pytorch_model.bin")
    requests = []

    def download(repo_id, *, revision=None, local_files_only=False, allow_patterns=None, **_):
        if local_files_only:
            raise huggingface_hub.errors.LocalEntryNotFoundError("nothing is cached")
        assert "pytorch_model.bin" not in allow_patterns
        return str(main if revision is None else whole)

    def discussions(self, repo_id, *, author, discussion_type, discussion_status):
        assert (discussion_type, discussion_status) == ("pull_request", "open")
        return iter([request for request in requests if request.author == author])

    for method in ("model_info", "get_repo_discussions"):
        # The real signatures: an argument that huggingface_hub does not know fails here.
        autospec = create_autospec(getattr(huggingface_hub.HfApi, method))
        if method == "get_repo_discussions":
            autospec.side_effect = discussions
        monkeypatch.setattr(huggingface_hub.HfApi, method, autospec)
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        create_autospec(huggingface_hub.snapshot_download, side_effect=download),
    )
    return requests


def test_the_hubs_own_conversion_to_safetensors_is_used(hub, tmp_path):
    hub.append(SimpleNamespace(author="SFconvertbot", git_reference="refs/pr/3"))
    checkpoint = find_checkpoint(REPO)
    assert checkpoint.folder == tmp_path / "main"
    assert checkpoint.weights == (tmp_path / "whole" / "model.safetensors",)


def test_a_conversion_by_anybody_else_is_not(hub):
    hub.append(SimpleNamespace(author="somebody", git_reference="refs/pr/4"))
    with pytest.raises(InputError, match="no safetensors weights"):
        find_checkpoint(REPO)


def test_the_end_token_of_openais_old_configs(tmp_path):
    folder = write_clip(tmp_path)
    expected = load_vlm(str(folder)).encode_texts(["a photo of a cat.", "x"])
    config = json.loads((folder / "config.json").read_text())
    # openai/clip-vit-base-patch16 says 2, which transformers reads as "the highest id".
    config["text_config"]["eos_token_id"] = 2
    write_json(folder / "config.json", config)
    assert load_vlm(str(folder)).encode_texts(["a photo of a cat.", "x"]).equal(expected)
