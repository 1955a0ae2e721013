"""Where a checkpoint lives on disk, by folder, hub id or the name of the embedded model.

Only JSON, text and safetensors files are ever read: no pickle, no code from a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ttgcd import data
from ttgcd.errors import InputError

EMBEDDED = "mini"
OPEN_CLIP_CONFIG = "open_clip_config.json"
OPEN_CLIP_WEIGHTS = "open_clip_model.safetensors"

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "spiece.model",
)
CONFIG_FILES = (
    "config.json",
    OPEN_CLIP_CONFIG,
    "preprocessor_config.json",
    "processor_config.json",
)
_WANTED = (*CONFIG_FILES, *TOKENIZER_FILES)
_INDEX = "model.safetensors.index.json"
_WEIGHTS = ("model.safetensors", "model-*.safetensors", _INDEX, OPEN_CLIP_WEIGHTS)

_OFFLINE_WAYS = (
    "offline ways: `model=PATH` with a downloaded folder, a hub id that is already in the "
    f"Hugging Face cache, or `model={EMBEDDED}` (the small embedded model) to try things out"
)
# Seconds until an unreachable hub is given up.
_TIMEOUT = 5.0


@dataclass(frozen=True)
class Checkpoint:
    """A folder with config and tokenizer, and the weight files, which may lie elsewhere."""

    name: str
    folder: Path
    weights: tuple[Path, ...]

    @property
    def open_clip(self) -> bool:
        """OpenCLIP's layout, as opposed to transformers'."""
        return self.weights[0].name == OPEN_CLIP_WEIGHTS

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file of the folder."""
        try:
            content = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"model {self.name}: {name} is missing in {self.folder}") from None
        except (OSError, ValueError) as error:
            raise InputError(f"model {self.name}: cannot read {name}: {error}") from error
        if not isinstance(content, dict):
            raise InputError(f"model {self.name}: {name} does not hold a JSON object")
        return content

    def tensors(self) -> dict[str, torch.Tensor]:
        """All weights, by their names in the checkpoint."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        tensors: dict[str, torch.Tensor] = {}
        for path in self.weights:
            try:
                tensors.update(load_file(path))
            except (OSError, SafetensorError) as error:
                raise InputError(f"model {self.name}: cannot read {path.name}: {error}") from error
        return tensors

    def fingerprint(self) -> str:
        """SHA-256 over the weights and the small files that decide the features too."""
        digest = hashlib.sha256()
        names = [name for name in _WANTED if (self.folder / name).is_file()]
        for path in (*(self.folder / name for name in names), *self.weights):
            digest.update(f"{path.name}:{path.stat().st_size}:".encode())
            for chunk in _chunks(path):
                digest.update(chunk)
        return digest.hexdigest()


def find_checkpoint(name: str) -> Checkpoint:
    """Locate `name`: "mini", a local folder, or a hub id (cache first, then the network)."""
    if name == EMBEDDED:
        return _in_folder(name, data.path(EMBEDDED))
    path = Path(name).expanduser()
    if path.is_dir():
        return _in_folder(name, path)
    repo = name.removeprefix("hf-hub:")
    if path.exists():
        raise InputError(f"model {name} is a file; give the folder that holds the checkpoint")
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo):
        raise InputError(
            f"model {name}: no such folder, and not a hub id (owner/name); {_OFFLINE_WAYS}"
        )
    return _cached(name, repo) or _downloaded(name, repo)


def _in_folder(name: str, folder: Path) -> Checkpoint:
    weights = _weights(folder)
    if weights:
        return Checkpoint(name, folder, weights)
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if pickled:
        raise InputError(
            f"model {name}: {folder} holds {pickled[0]} but no safetensors; pickled weights can "
            "run code and are never read, convert them to safetensors"
        )
    raise InputError(
        f"model {name}: no checkpoint in {folder}; expected config.json with model.safetensors, "
        f"or {OPEN_CLIP_CONFIG} with {OPEN_CLIP_WEIGHTS}"
    )


def _weights(folder: Path) -> tuple[Path, ...]:
    """The weight files of the layout that is there, transformers' first; empty when none is."""
    if (folder / "model.safetensors").is_file():
        return (folder / "model.safetensors",)
    if (folder / _INDEX).is_file():
        try:
            index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
            shards = [
                folder / Path(shard).name for shard in sorted({*index["weight_map"].values()})
            ]
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise InputError(f"{folder / _INDEX} is not a weight index: {error!r}") from error
        return tuple(shards) if all(shard.is_file() for shard in shards) else ()
    if (folder / OPEN_CLIP_WEIGHTS).is_file() and (folder / OPEN_CLIP_CONFIG).is_file():
        return (folder / OPEN_CLIP_WEIGHTS,)
    return ()


def _cached(name: str, repo: str) -> Checkpoint | None:
    """The checkpoint as the Hugging Face cache has it, without asking the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        main = Path(snapshot_download(repo, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    if not any((main / config).is_file() for config in ("config.json", OPEN_CLIP_CONFIG)):
        return None
    # Some repositories keep the safetensors in a pull request: a snapshot beside the main one.
    for snapshot in (main, *sorted(main.parent.iterdir())):
        if weights := _weights(snapshot):
            return Checkpoint(name, main, weights)
    return None


def _downloaded(name: str, repo: str) -> Checkpoint:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    patterns = [*_WANTED, *_WEIGHTS]

    def download(revision: str | None) -> Path:
        return Path(
            snapshot_download(
                repo, revision=revision, allow_patterns=patterns, etag_timeout=_TIMEOUT
            )
        )

    try:
        # Fails at once when the network is cut; downloads themselves retry for minutes.
        HfApi().model_info(repo, timeout=_TIMEOUT)
        folder = download(None)
        if weights := _weights(folder):
            return Checkpoint(name, folder, weights)
        # Older repositories hold pickled weights only; the hub's own conversion bot has left the
        # same weights as safetensors in a pull request. Nobody else's pull request is trusted.
        for request in HfApi().get_repo_discussions(
            repo, author="SFconvertbot", discussion_type="pull_request", discussion_status="open"
        ):
            if request.git_reference and (weights := _weights(download(request.git_reference))):
                return Checkpoint(name, folder, weights)
    except RepositoryNotFoundError as error:
        raise InputError(
            f"model {name}: the Hugging Face hub has no such public repository, "
            f"nor is there a folder of that name; {_OFFLINE_WAYS}"
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise _unreachable(name, error) from error
    except Exception as error:
        # The HTTP library behind huggingface_hub has changed between versions, and its transport
        # errors share no base class with the ones above.
        if "http" not in type(error).__module__:
            raise
        raise _unreachable(name, error) from error
    raise InputError(f"model {name}: the repository holds no safetensors weights; {_OFFLINE_WAYS}")


def _unreachable(name: str, error: Exception) -> InputError:
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return InputError(
        f"model {name} is neither a folder nor in the Hugging Face cache, and the hub cannot be "
        f"reached ({first_line}); {_OFFLINE_WAYS}"
    )


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            yield chunk
