"""Vision-language models: two encoders, their norm parameters, their temperature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttgcd.errors import InputError

if TYPE_CHECKING:
    import torch

    from ttgcd.vlm.base import VLM

DEFAULT = "openai/clip-vit-base-patch16"

__all__ = ["DEFAULT", "load_vlm"]


def load_vlm(name_or_path: str = DEFAULT, device: str = "auto") -> VLM:
    """Load a CLIP or SigLIP checkpoint.

    `name_or_path` is a local folder, a hub id (the Hugging Face cache first, then the network) or
    "mini", the embedded model. `device` is "auto" (CUDA when there is one), "cpu", "cuda:1", ...
    """
    from ttgcd.vlm.checkpoint import find_checkpoint

    target = _device(device)
    checkpoint = find_checkpoint(str(name_or_path))
    # After the search: an unknown name is reported before transformers is imported.
    from ttgcd.vlm.huggingface import build

    try:
        return build(checkpoint, target)
    except InputError:
        raise
    except Exception as error:
        # A damaged config or tokenizer makes the libraries beneath fail in many ways of their own.
        reason = (str(error).strip() or "no reason given").splitlines()[0]
        raise InputError(
            f"model {name_or_path}: the checkpoint cannot be used "
            f"({type(error).__name__}: {reason}); download it again or try another `model=...`"
        ) from error


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        there = [kind for kind in ("cuda", "mps", "xpu") if getattr(torch, kind).is_available()]
        raise InputError(
            f"device {name!r} cannot be used: this PyTorch has {', '.join(['cpu', *there])} here; "
            "try `device=cpu`"
        ) from error
    return device
