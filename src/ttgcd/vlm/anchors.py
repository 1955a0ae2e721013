"""Text anchors: one unit vector a class name, from prompt templates, cached on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ttgcd.errors import InputError

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM

TEMPLATES = ("a photo of a {}.",)
_BATCH = 256
_FORMAT = 1


def check_names(names: Sequence[str], allow_duplicates: bool = False) -> tuple[str, ...]:
    """The class names without surrounding blanks; an InputError for empty or repeated ones.

    Names that differ in case only count as repeated: the text encoders read lower case, so both
    would get the same anchor.
    """
    if isinstance(names, str):
        raise InputError(f"class names must be a list, got the single text {names!r}")
    cleaned = tuple(" ".join(str(name).split()) for name in names)
    if not cleaned:
        raise InputError("no class names given; name at least one known class")
    empty = [str(position) for position, name in enumerate(cleaned, start=1) if not name]
    if empty:
        raise InputError(f"empty class name at position {', '.join(empty)}; name it or remove it")
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for name in cleaned:
        if name.casefold() in seen:
            repeated[name] = None
        seen.add(name.casefold())
    if repeated and not allow_duplicates:
        raise InputError(
            f"duplicate class names: {', '.join(repeated)}; two classes of one name cannot be told "
            "apart, remove or rename one"
        )
    return cleaned


def check_templates(templates: Sequence[str]) -> tuple[str, ...]:
    """The templates; an InputError when there is none or one has no place for the name."""
    if isinstance(templates, str):
        templates = (templates,)
    if not templates:
        raise InputError("no prompt template given; e.g. 'a photo of a {}.'")
    for template in templates:
        if "{}" not in template:
            raise InputError(f"prompt template {template!r} has no {{}} where the class name goes")
    return tuple(templates)


def text_anchors(
    vlm: VLM,
    names: Sequence[str],
    templates: Sequence[str] = TEMPLATES,
    cache: bool = True,
    allow_duplicates: bool = False,
) -> np.ndarray:
    """Anchors (K, dim), float32, unit rows: z_k of the paper.

    Each prompt's feature is normalised, the mean over the templates is normalised again. Meant for
    the pretrained encoder: call it before, not after, the text tower is adapted.
    """
    names, templates = check_names(names, allow_duplicates), check_templates(templates)
    if not cache:
        return _encode(vlm, names, templates)
    path = cache_folder() / "anchors" / f"{_key(vlm, names, templates)}.safetensors"
    stored = _read(path, (len(names), vlm.dim))
    if stored is not None:
        return stored
    anchors = _encode(vlm, names, templates)
    # A cache that cannot be written (read-only home, full disk) costs time, not the run.
    with contextlib.suppress(OSError):
        _write(path, anchors)
    return anchors


def cache_folder() -> Path:
    """$TTGCD_CACHE, else $XDG_CACHE_HOME/ttgcd, else ~/.cache/ttgcd."""
    if own := os.environ.get("TTGCD_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ttgcd"


def _encode(vlm: VLM, names: Sequence[str], templates: Sequence[str]) -> np.ndarray:
    import torch

    total = np.zeros((len(names), vlm.dim))
    with torch.no_grad():
        for template in templates:
            # Not str.format: a name may hold braces itself.
            prompts = [template.replace("{}", name) for name in names]
            for start in range(0, len(prompts), _BATCH):
                features = vlm.encode_texts(prompts[start : start + _BATCH]).cpu().numpy()
                total[start : start + _BATCH] += features
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return (total / length).astype(np.float32)


def _key(vlm: VLM, names: Sequence[str], templates: Sequence[str]) -> str:
    parts = json.dumps([_FORMAT, vlm.fingerprint, names, templates], ensure_ascii=True)
    return hashlib.sha256(parts.encode()).hexdigest()


def _read(path: Path, shape: tuple[int, int]) -> np.ndarray | None:
    """The stored anchors; None when there are none or they are damaged."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        anchors = load(path.read_bytes())["anchors"]
    except (OSError, SafetensorError, KeyError, ValueError):
        return None
    if anchors.dtype != np.float32 or anchors.shape != shape:
        return None
    # NaN fails this comparison too.
    if not np.all(np.abs(np.linalg.norm(anchors, axis=1) - 1) < 1e-3):
        return None
    return anchors


def _write(path: Path, anchors: np.ndarray) -> None:
    """Write beside, then rename: readers see a whole file or none."""
    from safetensors.numpy import save

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(save({"anchors": anchors}))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
