"""A byte-level BPE in the format of CLIP's tokenizer, learnt from the names of the icons."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

START, END = "<|startoftext|>", "<|endoftext|>"


def train_tokenizer(texts: Iterable[str], folder: Path, merges: int = 3000) -> None:
    """Write vocab.json, merges.txt and what else `CLIPTokenizer` keeps."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import CLIPTokenizer

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bpe = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    bpe.normalizer = normalizers.Lowercase()
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) * 2 + merges,
        initial_alphabet=alphabet,
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    learnt = json.loads(bpe.to_str())["model"]["merges"]
    pairs = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in learnt]
    # Every byte can stand inside and at the end of a word, so that no text is unknown.
    tokens = [*alphabet, *(c + "</w>" for c in alphabet), *("".join(p) for p in pairs), START, END]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    rows = "\n".join(" ".join(pair) for pair in pairs)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{rows}\n")
    CLIPTokenizer(
        vocab=vocabulary,
        merges=pairs,
        unk_token=END,
        bos_token=START,
        eos_token=END,
        pad_token=END,
        model_max_length=40,
    ).save_pretrained(folder)
