"""The default method without each of its ingredients, on the development streams.

    python benchmarks/ablation.py run --features FOLDER
    python benchmarks/ablation.py table

FOLDER holds what ``benchmarks/discovery.py run`` encoded. L is given. Rows that are in the file
already are not measured again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from arrangements import Job
from discovery import DEVELOPMENT, measure, read

from ttgcd.prototypes import partition, refit, scout_stream
from ttgcd.prototypes.calibration import Geometry, Standard
from ttgcd.prototypes.refit import Trust
from ttgcd.prototypes.text_evidence import Bonus, Texts

Patch = tuple[Any, str, Any]  # of this module or class, this name, to this value
_STANDARD, _TEXTS = Standard.of, Texts.of


def _same_for_all(rows: np.ndarray, texts: np.ndarray, chunk: int = 1024) -> Standard:
    """Logits with one mean and one deviation for all texts."""
    own = _STANDARD(rows, texts, chunk)
    if not len(texts):
        return own
    same = np.ones_like(own.mean)
    return Standard(texts, own.mean.mean() * same, own.deviation.mean() * same)


def _centred(rows: np.ndarray) -> Geometry:
    return Geometry(rows.mean(axis=0), np.eye(rows.shape[1], dtype=np.float32))


def _no_words(anchors: np.ndarray, words: np.ndarray | None, scale: float) -> Texts:
    return _TEXTS(anchors, None, scale)


def _full_trust(*_: Any) -> Trust:
    return Trust(1.0, refit.TEXT_SHARE, 1.0)


def _names_alone(*_: Any) -> Trust:
    return Trust(1.0, 0.0, 1.0)


def _as_it_is(rows: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
    return rows


def _seeds_alone(rows: np.ndarray, mapped: np.ndarray, texts: Texts, *rest: Any) -> Any:
    """Spread seeds in the place of words that explain most."""
    known, keep, bonus, expected, rng = rest
    return partition.from_seeds(mapped, known, keep, bonus, len(texts.anchors), expected, 1, rng)


def _silent(known: Bonus, *_: Any) -> Bonus:
    """Novel categories have words, and no bonus from them."""
    return known


_NEVER = 1e9
_NO_SHARE: Patch = (refit, "TEXT_SHARE", 1e-9)
_NO_START: Patch = (refit, "from_words", _seeds_alone)
_NO_WORDS: Patch = (Texts, "of", staticmethod(_no_words))
_NO_SMOOTHING: list[Patch] = [(partition, "smooth", _as_it_is), (refit, "smooth", _as_it_is)]
_ONE: dict[str, float] = {"restarts": 1, "fresh_restarts": 1}
#: What is left out: by changes in the code, and by options of the method.
WITHOUT: dict[str, list[Patch]] = {
    "nothing": [],
    "all texts, but for where the known begin": [(refit, "WEIGHT", 0.0), _NO_SHARE, _NO_START],
    "bonus of names and words": [(refit, "WEIGHT", 0.0)],
    "bonus of the novel by words": [(refit, "word_bonus", _silent)],
    "vocabulary": [_NO_WORDS],
    "starts at words": [_NO_START],
    "words in the features": [_NO_SHARE],
    "half whitening (centred only)": [(Geometry, "of", staticmethod(_centred))],
    "standardised logits": [(Standard, "of", staticmethod(_same_for_all))],
    "measured trust (full instead)": [(refit, "_measure", _full_trust)],
    "weight of samples by their texts": [(partition, "SHARPNESS", 0.0)],
    "smoothing": _NO_SMOOTHING,
    "several restarts (one)": [],
    "fresh starts after the first fit": [
        (scout_stream, "_MARGIN", _NEVER),
        (scout_stream, "_LAST_MARGIN", _NEVER),
    ],
    "refits within the stream": [],
    "vocabulary; measured trust (full instead)": [_NO_WORDS, (refit, "_measure", _names_alone)],
    "vocabulary; smoothing": [_NO_WORDS, *_NO_SMOOTHING],
    "vocabulary; several restarts (one)": [_NO_WORDS],
}
OPTIONS: dict[str, dict[str, float]] = {
    "several restarts (one)": _ONE,
    "vocabulary; several restarts (one)": _ONE,
    "refits within the stream": {"growth": _NEVER},
}


def jobs(args: argparse.Namespace) -> Iterator[tuple[str, Job]]:
    for seed in range(args.seeds):
        for left_out in args.without:
            for benchmark, streams in DEVELOPMENT.items():
                for stream in streams:
                    yield left_out, Job("shuffled", benchmark, stream, "scout", seed)


def measured(folder: Path, left_out: str, job: Job) -> dict[str, Any]:
    with ExitStack() as stack:
        for owner, name, value in WITHOUT[left_out]:
            stack.enter_context(patch.object(owner, name, value))
        return {"left_out": left_out, **measure(folder, job, OPTIONS.get(left_out))}


def run(args: argparse.Namespace) -> None:
    done = {(row["left_out"], row["stream"], row["seed"]) for row in read(args.out)}
    todo = [(what, job) for what, job in jobs(args) if (what, job.stream, job.seed) not in done]
    print(f"{len(todo)} to measure, {len(done)} done", flush=True)
    with ProcessPoolExecutor(args.jobs) as pool, args.out.open("a") as file:
        whats, which = [what for what, _ in todo], [job for _, job in todo]
        for row in pool.map(measured, [args.features] * len(todo), whats, which):
            file.write(json.dumps(row) + "\n")
            file.flush()


def table(args: argparse.Namespace) -> None:
    rows = read(args.out)
    print("| left out | IconShift, arrival / final | CIFAR-10-C | all six | change |")
    print("|---|---:|---:|---:|---:|")
    whole = None
    for left_out in WITHOUT:
        mine = [row for row in rows if row["left_out"] == left_out]
        if not mine:
            continue
        cells = []
        for names in (*((name,) for name in DEVELOPMENT), tuple(DEVELOPMENT)):
            some = [row for row in mine if row["benchmark"] in names]
            mean = [np.mean([row[when][0] for row in some]) for when in ("arrival", "final")]
            cells.append(f"{mean[0]:.1f} / {mean[1]:.1f}")
        whole = whole if whole is not None else mean
        change = f"{mean[0] - whole[0]:+.1f} / {mean[1] - whole[1]:+.1f}"
        print(f"| {left_out} | " + " | ".join(cells) + f" | {change} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("--features", type=Path, default=Path("features"))
    parser.add_argument("--out", type=Path, default=Path("results/ablation.jsonl"))
    parser.add_argument("--without", type=lambda s: s.split("+"), default=list(WITHOUT))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    run(args) if args.action == "run" else table(args)


if __name__ == "__main__":
    main()
