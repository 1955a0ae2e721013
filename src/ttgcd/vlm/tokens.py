"""Texts to token ids, as each family was trained."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ttgcd.errors import InputError
from ttgcd.vlm.checkpoint import Checkpoint

Tokenize = Callable[[Sequence[str]], dict[str, torch.Tensor]]

_CLIP_END = "<|endoftext|>"
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def clip_tokenizer(checkpoint: Checkpoint, length: int, vocabulary: int, end: int) -> Tokenize:
    """CLIP: padded to the longest text; attention is causal, so padding changes nothing."""
    folder = checkpoint.folder
    if (folder / "tokenizer.json").is_file():
        read = _fast_clip(folder / "tokenizer.json", length)
    elif (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        read = _slow_clip(folder, length)
    else:
        raise InputError(
            f"model {checkpoint.name}: no tokenizer in {folder}; put tokenizer.json (or vocab.json "
            "and merges.txt) of openai/clip-vit-base-patch16 there"
        )
    size, own_end, tokenize = read
    if size > vocabulary or end not in (2, own_end):
        raise InputError(
            f"model {checkpoint.name}: the tokenizer ({size} tokens, end token {own_end}) is not "
            f"the one of the text encoder ({vocabulary} tokens, end token {end})"
        )
    return tokenize


def _fast_clip(path: Path, length: int) -> tuple[int, int | None, Tokenize]:
    """By the tokenizers library alone: importing transformers takes longer than many a run."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    end = tokenizer.token_to_id(_CLIP_END)
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(pad_id=end or 0, pad_token=_CLIP_END)

    def tokenize(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        rows = tokenizer.encode_batch(list(texts))
        return {"input_ids": torch.tensor([row.ids for row in rows])}

    return tokenizer.get_vocab_size(with_added_tokens=True), end, tokenize


def _slow_clip(folder: Path, length: int) -> tuple[int, int | None, Tokenize]:
    """From vocab.json and merges.txt, which transformers knows how to put together."""
    from transformers import CLIPTokenizer

    tokenizer = CLIPTokenizer.from_pretrained(str(folder), local_files_only=True)

    def tokenize(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        tokens = tokenizer(
            list(texts), padding=True, truncation=True, max_length=length, return_tensors="pt"
        )
        return {"input_ids": tokens["input_ids"]}

    return len(tokenizer), tokenizer.eos_token_id, tokenize


def siglip_tokenizer(checkpoint: Checkpoint, length: int, vocabulary: int) -> Tokenize:
    """SigLIP: always padded to the full length and no mask, as it was trained."""
    from transformers import PreTrainedTokenizerFast

    folder = checkpoint.folder
    if not (folder / "tokenizer.json").is_file():
        raise InputError(
            f"model {checkpoint.name}: no tokenizer.json in {folder}; a SigLIP folder with "
            "spiece.model only is not supported"
        )
    tokenizer = PreTrainedTokenizerFast.from_pretrained(str(folder), local_files_only=True)
    if len(tokenizer) > vocabulary or tokenizer.pad_token_id is None:
        raise InputError(
            f"model {checkpoint.name}: the tokenizer ({len(tokenizer)} tokens, padding token "
            f"{tokenizer.pad_token!r}) is not the one of the text encoder ({vocabulary} tokens)"
        )
    # SigLIP 2 took Gemma's tokenizer and kept the punctuation.
    gemma = "Gemma" in str(checkpoint.json("tokenizer_config.json").get("tokenizer_class"))
    clean = str.lower if gemma else _canonical

    def tokenize(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        tokens = tokenizer(
            [clean(text) for text in texts],
            padding="max_length",
            truncation=True,
            max_length=length,
            return_tensors="pt",
        )
        return {"input_ids": tokens["input_ids"]}

    return tokenize


def _canonical(text: str) -> str:
    """Lower case, no punctuation, single spaces: SigLIP's training texts looked so."""
    return re.sub(r"\s+", " ", text.lower().translate(_PUNCTUATION)).strip()
