"""Train the image tower of `mini` and its word vectors for a fixed time.

Each image is classified over the whole vocabulary of words by cosine with learnt word vectors;
the target is spread over the words of its name. The learning rate follows elapsed time, so the
schedule ends at the budget however busy the machine is. Interrupted, it goes on from its last
checkpoint.

    python training/train.py --corpus CORPUS --out RUN --minutes 60
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from pathlib import Path

import numpy as np
import torch
from data import Corpus, icon_batch, photo_batch
from model import encode_images, make_config, make_model
from torch.nn import functional as F

WORKERS = 2  # processes of one thread: they wait for each other once a step, not once an operation


def loss_of(logits: torch.Tensor, targets: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Cross-entropy against the mean of one-hot targets (-1 = none), a little smoothed."""
    logs = F.log_softmax(logits, -1)
    known = targets >= 0
    picked = logs.gather(1, targets.clamp(min=0)) * known
    return -((1 - smoothing) * picked.sum(1) / known.sum(1) + smoothing * logs.mean(1)).mean()


@torch.no_grad()
def validate(
    model: torch.nn.Module, words: torch.Tensor, corpus: Corpus, side: int
) -> tuple[float, float]:
    """Share of held-back training icons, and photographs, whose best word is one of their own."""
    model.eval()
    unit = F.normalize(words, dim=-1)
    icons, photos = [], []
    for chunk in np.array_split(corpus.valid, 8):
        best = (
            encode_images(model, icon_batch(corpus.images[chunk], corpus.mono[chunk], side, None))
            @ unit.T
        ).argmax(1)
        icons.append((corpus.targets[chunk] == best.numpy()[:, None]).any(1))
    for chunk in np.array_split(corpus.photo_valid, 8):
        best = (
            encode_images(model, photo_batch(corpus.photos[chunk], side, None)) @ unit.T
        ).argmax(1)
        photos.append(corpus.photo_targets[chunk] == best.numpy())
    model.train()
    return float(np.concatenate(icons).mean()), float(np.concatenate(photos).mean())


def image_tower(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {k: v for k, v in model.state_dict().items() if k.startswith(("vision", "visual"))}


def share_gradients(parameters: list[torch.nn.Parameter]) -> None:
    """Average the gradients of all workers."""
    flat = torch.cat([p.grad.flatten() for p in parameters])
    torch.distributed.all_reduce(flat)
    for p, grad in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        p.grad.copy_(grad.view_as(p) / WORKERS)


def work(rank: int, args: argparse.Namespace) -> None:
    """One of the workers: its half of every batch, the same steps as the others."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{(args.out / 'meet').resolve()}", rank=rank, world_size=WORKERS
    )
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    corpus = Corpus(args.corpus, args.seed)
    config = make_config(args.width, args.layers, args.channels, args.blocks, args.dim)
    model = make_model(config)
    model.vision_model.embeddings.patch_embedding.to(memory_format=torch.channels_last)
    words = torch.nn.Parameter(torch.randn(len(corpus.words), args.dim) * 0.1)
    scale = torch.nn.Parameter(torch.tensor(math.log(16.0)))
    tower = [*model.vision_model.parameters(), *model.visual_projection.parameters()]
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in tower if p.ndim > 1], "weight_decay": args.decay},
            {"params": [p for p in tower if p.ndim <= 1] + [words, scale], "weight_decay": 0.0},
        ],
        lr=args.rate,
        betas=(0.9, 0.98),
    )
    checkpoint, step, seen, elapsed = args.out / "checkpoint.pt", 0, 0, 0.0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=False)
        tower_state = {k: v for k, v in saved["model"].items() if k.startswith("vis")}
        model.load_state_dict(tower_state, strict=False)  # the text tower is trained later
        words.data, scale.data = saved["words"], saved["scale"]
        optimiser.load_state_dict(saved["optimiser"])
        step, seen, elapsed = saved["step"], saved["seen"], saved["elapsed"]
    elif args.start:
        saved = torch.load(args.start, weights_only=False)
        model.load_state_dict(saved["model"], strict=False)
        words.data, scale.data = saved["words"], saved["scale"]
    seed = [args.seed, rank, step]
    rng, g = np.random.default_rng(seed), torch.Generator().manual_seed(hash(tuple(seed)) % 2**31)
    weights = corpus.weight[corpus.train]
    chance = np.cumsum(weights / weights.sum())
    batch = args.batch // WORKERS
    n_photos = round(batch * args.photos)
    log = args.out / "log.csv"
    if rank == 0 and not log.exists():
        log.write_text("minutes,step,images,side,rate,loss,scale,valid_icons,valid_photos\n")
    model.train()
    side, rate = 32, 0.0
    start, saved_at, mean = time.monotonic() - elapsed, elapsed, None
    budget = args.minutes * 60
    while True:
        clock = torch.tensor(time.monotonic() - start, dtype=torch.float64)
        torch.distributed.broadcast(clock, 0)  # one clock, so that both take the same step
        elapsed = clock.item()
        done = min(elapsed / budget, 1.0)
        finished = done >= 1.0
        if rank == 0 and (finished or elapsed - saved_at > args.checkpoint_minutes * 60):
            icons, photos = validate(model, words, corpus, 48 if done > args.small else 32)
            with log.open("a", newline="") as file:
                csv.writer(file).writerow(
                    [
                        f"{elapsed / 60:.2f}",
                        step,
                        seen,
                        side,
                        f"{rate:.2e}",
                        f"{mean:.4f}",
                        f"{scale.exp().item():.2f}",
                        f"{icons:.4f}",
                        f"{photos:.4f}",
                    ]
                )
            state = {
                "model": image_tower(model),
                "words": words.data,
                "scale": scale.data,
                "step": step,
                "seen": seen,
                "elapsed": elapsed,
                "vocabulary": corpus.words,
                "args": vars(args),
                "optimiser": optimiser.state_dict(),
                "finished": finished,
            }
            torch.save(state, checkpoint.with_suffix(".new"))
            checkpoint.with_suffix(".new").replace(checkpoint)
            saved_at = elapsed
        if finished:
            break
        side = 48 if done > args.small else 32
        warm = min(1.0, (step + 1) / 200)
        rate = args.rate * warm * (0.5 * (1 + math.cos(math.pi * done)) + 1e-3)
        for group in optimiser.param_groups:
            group["lr"] = rate
        rows = corpus.train[
            np.searchsorted(chance, rng.random(batch - n_photos)).clip(max=len(chance) - 1)
        ]
        shots = rng.choice(corpus.photo_train, n_photos)
        images = torch.cat(
            [
                icon_batch(corpus.images[rows], corpus.mono[rows], side, g),
                photo_batch(corpus.photos[shots], side, g),
            ]
        )
        photo_targets = np.full((n_photos, corpus.targets.shape[1]), -1)
        photo_targets[:, 0] = corpus.photo_targets[shots]
        targets = torch.from_numpy(np.concatenate([corpus.targets[rows], photo_targets]))
        logits = (
            scale.exp().clamp(max=100.0)
            * encode_images(model, images)
            @ F.normalize(words, dim=-1).T
        )
        loss = loss_of(logits, targets, 0.02)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        share_gradients([*tower, words, scale])
        torch.nn.utils.clip_grad_norm_([*tower, words], 1.0)
        optimiser.step()
        step, seen = step + 1, seen + args.batch
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if rank == 0 and step % 50 == 0:
            print(
                f"{elapsed / 60:.1f} min step {step} loss {mean:.3f} rate {rate:.1e} "
                f"{seen / max(elapsed, 1):.0f} images/s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--minutes", type=float, default=60, help="wall clock for the whole schedule"
    )
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--photos", type=float, default=0.28, help="share of CIFAR-10 in a batch")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--decay", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--channels", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--blocks", type=int, nargs="+", default=[0, 1, 1])
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument(
        "--small", type=float, default=0.6, help="share of the time at 32 px before 48 px"
    )
    parser.add_argument(
        "--start", type=Path, help="checkpoint.pt of an earlier run: its weights, a new schedule"
    )
    parser.add_argument("--checkpoint-minutes", type=float, default=4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "meet").unlink(missing_ok=True)
    torch.multiprocessing.spawn(work, (args,), nprocs=WORKERS)


if __name__ == "__main__":
    main()
