"""Train the text tower of `mini` to land where the word vectors are.

A text names a thing in a template; its target is the mean of the unit vectors of the words the
image tower was trained against. Words outside that vocabulary stay in the text but not in the
target, so the tower learns to read past them. It may run beside train.py: it follows the newest
checkpoint. With --from it starts from an earlier text tower.

    python training/text.py --corpus CORPUS --run RUN --minutes 6
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from pathlib import Path

import numpy as np
import torch
from model import make_config, make_model
from names import SPELLING, words_of
from tokenizer import train_tokenizer
from torch.nn import functional as F

TEMPLATES = (
    "a photo of a {}.", "a photo of a {}.", "a photo of a {}.", "{}", "a {}", "a photo of the {}.",
    "an image of a {}.", "a picture of a {}.", "a drawing of a {}.", "an icon of a {}.",
    "a blurry photo of a {}.", "a bad photo of a {}.", "a good photo of a {}.", "a sketch of a {}.",
    "a cartoon {}.", "art of the {}.", "itap of a {}.", "a cropped photo of a {}.", "the {}.",
    "a photo of many {}.", "an emoji of a {}.",
)  # fmt: skip


def pairs_of(corpus: Path, vocabulary: list[str]) -> list[tuple[str, list[int]]]:
    """Distinct (name as text, its words by number): icon names, words, other spellings."""
    number = {word: i for i, word in enumerate(vocabulary)}
    found = {}
    with (corpus / "index.csv").open() as file:
        for _, icon, _, _ in csv.reader(file):
            words = words_of(icon)
            if len(words) <= 2:
                found[" ".join(words)] = [number[w] for w in words if w in number]
    for word in vocabulary:
        found[word] = [number[word]]
        found[word + "s"] = [number[word]]
    for other, usual in SPELLING.items():
        if all(word in number for word in usual.split()):
            found[other] = [number[word] for word in usual.split()]
    return [(text, ids) for text, ids in sorted(found.items()) if ids]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True, help="where train.py left checkpoint.pt")
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--single", type=float, default=0.5, help="share of single words")
    parser.add_argument("--apart", type=float, default=0.1, help="weight of telling words apart")
    parser.add_argument("--from", dest="earlier", type=Path, help="an earlier text.pt")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    from transformers import CLIPTokenizer

    saved = torch.load(args.run / "checkpoint.pt", weights_only=False)
    vocabulary = saved["vocabulary"]
    pairs = pairs_of(args.corpus, vocabulary)
    # Other spellings (automobile for car) are few and must not be drowned by the rest.
    single = [i for i, (_, ids) in enumerate(pairs) if len(ids) == 1]
    single += [i for i in single if pairs[i][0] in SPELLING] * 20
    folder = args.run / "tokenizer"
    if not (folder / "vocab.json").exists():
        train_tokenizer([t.format(w) for w in vocabulary for t in TEMPLATES[:4]], folder)
    tokenizer = CLIPTokenizer.from_pretrained(folder)
    start_token, end_token = tokenizer.bos_token_id, tokenizer.eos_token_id
    wide = max(len(ids) for _, ids in pairs)
    chosen = np.full((len(pairs), wide), -1)
    for row, (_, ids) in zip(chosen, pairs, strict=True):
        row[: len(ids)] = ids
    chosen = torch.from_numpy(chosen)
    # A text's tokens are those of its template's two ends around those of the name.
    names = tokenizer([text for text, _ in pairs], add_special_tokens=False)["input_ids"]
    ends = [
        tokenizer(template.split("{}"), add_special_tokens=False)["input_ids"]
        for template in TEMPLATES
    ]
    known = (chosen >= 0).float()
    shape = {key: saved["args"][key] for key in ("width", "layers", "channels", "blocks", "dim")}
    model = make_model(make_config(**shape, vocabulary=len(tokenizer)))
    tower = [*model.text_model.parameters(), *model.text_projection.parameters()]
    if args.earlier:
        model.load_state_dict(torch.load(args.earlier), strict=False)
    optimiser = torch.optim.AdamW(tower, lr=args.rate, weight_decay=0.01, betas=(0.9, 0.98))
    rng = np.random.default_rng(args.seed)
    start, step, budget = time.monotonic(), 0, args.minutes * 60
    model.train()
    while (done := (time.monotonic() - start) / budget) < 1:
        for group in optimiser.param_groups:
            group["lr"] = args.rate * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * done))
        if step % 100 == 0:  # train.py may still be at work: its word vectors move
            words = torch.load(args.run / "checkpoint.pt", weights_only=False)["words"]
            unit = F.normalize(words, dim=-1)
            targets = F.normalize((unit[chosen.clamp(min=0)] * known[..., None]).sum(1), dim=-1)
        rest = round(args.batch * (1 - args.single))
        rows = np.concatenate(
            [rng.integers(len(pairs), size=rest), rng.choice(single, args.batch - rest)]
        )
        texts = []
        for row in rows:
            before, after = ends[rng.integers(len(ends))]
            texts.append([start_token, *(before + names[row] + after)[:38], end_token])
        length = max(map(len, texts))
        tokens = torch.tensor([text + [end_token] * (length - len(text)) for text in texts])
        mask = torch.tensor([[1] * len(text) + [0] * (length - len(text)) for text in texts])
        pooled = model.text_model(input_ids=tokens, attention_mask=mask).pooler_output
        out = F.normalize(model.text_projection(pooled), dim=-1)
        near = 1 - (out * targets[rows]).sum(-1).mean()
        # Single words are also told apart from all the others.
        apart = F.cross_entropy(20 * out[rest:] @ unit.T, chosen[rows[rest:], 0])
        loss = near + args.apart * apart
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tower, 1.0)
        optimiser.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step} cosine {1 - near.item():.3f} apart {apart.item():.3f}", flush=True)
    state = {k: v for k, v in model.state_dict().items() if k.startswith("text_")}
    torch.save(state, args.run / "text.pt")


if __name__ == "__main__":
    main()
