"""Texts to token ids, as each family was trained."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence

import torch

from ttgcd.errors import InputError
from ttgcd.vlm.checkpoint import Checkpoint

Tokenize = Callable[[Sequence[str]], dict[str, torch.Tensor]]

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def clip_tokenizer(checkpoint: Checkpoint, length: int, vocabulary: int, end: int) -> Tokenize:
    """CLIP: padded to the longest text; attention is causal, so padding changes nothing."""
    from transformers import CLIPTokenizer

    folder = checkpoint.folder
    split = (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file()
    if not split and not (folder / "tokenizer.json").is_file():
        raise InputError(
            f"model {checkpoint.name}: no tokenizer in {folder}; put tokenizer.json (or vocab.json "
            "and merges.txt) of openai/clip-vit-base-patch16 there"
        )
    tokenizer = CLIPTokenizer.from_pretrained(str(folder), local_files_only=True)
    if len(tokenizer) > vocabulary or end not in (2, tokenizer.eos_token_id):
        raise InputError(
            f"model {checkpoint.name}: the tokenizer ({len(tokenizer)} tokens, end token "
            f"{tokenizer.eos_token_id}) is not the one of the text encoder ({vocabulary} tokens, "
            f"end token {end})"
        )

    def tokenize(texts: Sequence[str]) -> dict[str, torch.Tensor]:
        tokens = tokenizer(
            list(texts), padding=True, truncation=True, max_length=length, return_tensors="pt"
        )
        return {"input_ids": tokens["input_ids"], "attention_mask": tokens["attention_mask"]}

    return tokenize


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
