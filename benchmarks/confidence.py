"""Calibration of the confidence column, beside raw softmax; ``--fit`` makes the shipped weights.

    python benchmarks/confidence.py --data data [--methods scout,paper] [--fit] [--choose]

Streams of mini's features without re-alignment. The weights are fitted on the development streams
(IconShift line, emoji, engraved; CIFAR-10-C fog, gaussian_noise, jpeg_compression) and judged on
all others. Raw softmax is the pretrained model's own: its probability of the known class that was
answered, and one minus its largest probability for a novel answer.

``--fit`` fits the weights that ship and writes them: the one command after a method has changed.
The signs that they weigh were chosen with an eye on all streams. ``--choose`` judges what is had
without that: of all signs those are kept that the development streams alone ask for (one sign after
the other is left out as long as that lowers the log loss on a development stream that was left out
of the fit), and weights fitted on those are judged on the held-out streams. Nothing is written.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from names import encode
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from ttgcd.data import path
from ttgcd.data.words import vocabulary
from ttgcd.datasets import load_benchmark
from ttgcd.engines.local import run
from ttgcd.evaluation.calibration import answers_right, expected_calibration_error, reliability
from ttgcd.methods.base import Task
from ttgcd.methods.registry import PRESETS, load_method, load_preset
from ttgcd.methods.scout import Scout
from ttgcd.prototypes.confidence import (
    KNOWN_SIGNS,
    NOVEL_SIGNS,
    OTHERS,
    Confidence,
    Logistic,
    StreamFacts,
    shipped,
)
from ttgcd.streams.base import Batch
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

DEVELOPMENT = {
    "iconshift": ("line", "emoji", "engraved"),
    "cifar10-c": ("fog", "gaussian_noise", "jpeg_compression"),
}
#: Presets whose answers on the development streams the weights of a method are fitted on.
FITTED_ON = {"scout": ("scout",), OTHERS: ("scout", "paper", "robust")}
Calibration = tuple[Logistic, Logistic]
Part = tuple[np.ndarray, np.ndarray]  # signs, and which answers were right


def batches(features: np.ndarray) -> list[Batch]:
    found = []
    for start in range(0, len(features), 128):
        numbers = tuple(range(start, min(start + 128, len(features))))
        rows = features[start : start + 128]
        found.append(
            Batch(tuple(map(str, numbers)), start, numbers, numbers[-1] + 1, features=rows)
        )
    return found


def answers(spec: str, features: np.ndarray, task: Task) -> np.ndarray:
    """Final categories of a preset, or of a method by its name."""
    method = load_preset(spec) if spec in PRESETS else load_method(spec)
    return np.asarray(run(method, task, batches(features)).category)


def fit(parts: list[Part]) -> Logistic:
    """Every stream weighs the same."""
    parts = [(signs, right) for signs, right in parts if len(right)]
    signs = np.concatenate([s for s, _ in parts])
    right = np.concatenate([r for _, r in parts])
    weight = np.concatenate([np.full(len(r), 500 / max(50, len(r))) for _, r in parts])
    mean, scale = signs.mean(axis=0), signs.std(axis=0) + 1e-9
    model = LogisticRegression(C=0.1, max_iter=1000)
    model.fit((signs - mean) / scale, right, sample_weight=weight)
    return Logistic(mean, scale, model.coef_[0], float(model.intercept_[0]))


def as_json(weights: Logistic) -> dict[str, object]:
    record = {
        key: np.round(getattr(weights, key), 5).tolist() for key in ("mean", "scale", "weights")
    }
    return {**record, "bias": round(weights.bias, 5)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data", type=Path)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--benchmarks", default="iconshift,cifar10-c")
    parser.add_argument("--methods", default="scout,paper,robust")
    parser.add_argument("--limit", type=int, default=3000, help="images of each stream")
    parser.add_argument("--fit", action="store_true", help="fit and write data/confidence.json")
    parser.add_argument("--choose", action="store_true", help="signs by development streams alone")
    parser.add_argument("--cache", type=Path, help="keep features here")
    args = parser.parse_args()
    vlm, words = load_vlm(args.model), vocabulary()[: Scout.words]
    streams = {}
    for name in args.benchmarks.split(","):
        bench = load_benchmark(name, args.data)
        anchors = text_anchors(vlm, bench.known)
        task = Task(
            known=tuple(bench.known),
            anchors=anchors,
            novel=len(bench.novel),
            logit_scale=vlm.logit_scale,
            words=words,
            word_embeddings=text_anchors(vlm, words, allow_duplicates=True),
        )
        for stream in bench.every_stream:
            source, labels = bench.open_stream(stream)
            kept = args.cache and args.cache / f"{name}-{stream}-{args.limit}.npy"
            if kept and kept.exists():
                features = np.load(kept)
            else:
                features = encode(vlm, source, args.limit)
                if kept:
                    args.cache.mkdir(parents=True, exist_ok=True)
                    np.save(kept, features)
            there = np.flatnonzero(features.any(axis=1))
            there = np.random.default_rng(0).permutation(there)
            streams[name, stream] = (features[there], labels[there], task)
    if args.fit:
        record = {
            method: {"known": as_json(known), "novel": as_json(novel)}
            for method in FITTED_ON
            for known, novel in [fit_method(streams, FITTED_ON[method])]
        }
        path("confidence.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for spec in args.methods.split(","):
        method = spec if spec in FITTED_ON else OTHERS
        if args.choose:
            judge(spec, streams, fit_method(streams, FITTED_ON[method], choose=True))
        else:
            judge(spec, streams, shipped(method))


def development(streams: dict, specs: Sequence[str]) -> list[list[tuple[Part, Part]]]:
    """Signs and truth of known and of novel answers, by development stream and method."""
    found = []
    for (name, stream), (features, labels, task) in streams.items():
        if stream not in DEVELOPMENT.get(name, ()):
            continue
        own = []
        for spec in specs:
            given = answers(spec, features, task)
            right = answers_right(given, labels, task.n_known)
            facts = StreamFacts(features, given, task.anchors)
            is_known, as_known, as_novel = facts.signs(features, given)
            known, novel = is_known, ~is_known
            own.append(((as_known[known], right[known]), (as_novel[novel], right[novel])))
        found.append(own)
    return found


def fit_method(streams: dict, specs: Sequence[str], choose: bool = False) -> Calibration:
    by_stream = development(streams, specs)
    fitted = []
    for place, signs in enumerate((KNOWN_SIGNS, NOVEL_SIGNS)):
        parts = [[pair[place] for pair in own] for own in by_stream]
        used = chosen(parts, signs) if choose else list(range(len(signs)))
        weights = fit([_only(part, used) for own in parts for part in own])
        mean, scale, all_weights = np.zeros(len(signs)), np.ones(len(signs)), np.zeros(len(signs))
        mean[used], scale[used], all_weights[used] = weights.mean, weights.scale, weights.weights
        fitted.append(Logistic(mean, scale, all_weights, weights.bias))
    return fitted[0], fitted[1]


def chosen(parts: list[list[Part]], signs: Sequence[str]) -> list[int]:
    """The signs that help on a stream which was left out of the fit."""

    def loss(used: list[int]) -> float:
        found = []
        for out, own in enumerate(parts):
            others = [p for at, other in enumerate(parts) if at != out for p in other]
            weights = fit([_only(part, used) for part in others])
            for signs_, right in own:
                p = np.clip(weights(signs_[:, used]), 1e-3, 1 - 1e-3)
                found.append(-np.log(np.where(right, p, 1 - p)).mean() if len(right) else np.nan)
        return float(np.nanmean(found))

    used = list(range(len(signs)))
    best = loss(used)
    while len(used) > 1:
        least, worst = min((loss([u for u in used if u != one]), one) for one in used)
        if least >= best:
            break
        best = least
        used.remove(worst)
    print("chosen on the development streams: " + "; ".join(signs[one] for one in used))
    return used


def _only(part: Part, used: list[int]) -> Part:
    return part[0][:, used], part[1]


def judge(method: str, streams: dict, calibration: Calibration) -> None:
    rows, everything = [], []
    for (name, stream), (features, labels, task) in streams.items():
        given = answers(method, features, task)
        right = answers_right(given, labels, task.n_known)
        ours = Confidence.of_stream(features, given, task.anchors, calibration)(features, given)
        says = softmax(features @ task.anchors.T * task.logit_scale, axis=1)
        own = says[np.arange(len(given)), np.minimum(given, task.n_known - 1)]
        raw = np.where(given < task.n_known, own, 1 - says.max(axis=1))
        held = stream not in DEVELOPMENT.get(name, ())
        rows.append(
            (
                name,
                held,
                right.mean(),
                expected_calibration_error(ours, right),
                expected_calibration_error(raw, right),
            )
        )
        if held:
            everything.append((ours, right))
    print(f"{method}: expected calibration error in percent, mean over streams")
    print("benchmark    streams         n  right  confidence  raw softmax  ratio")
    for held, kind in ((False, "development"), (True, "held out")):
        for name in {row[0]: None for row in rows}:
            own_rows = [row[2:] for row in rows if row[0] == name and row[1] == held]
            if own_rows:
                share, ours_, raw_ = 100 * np.mean(own_rows, axis=0)
                print(
                    f"{name:<12} {kind:<12} {len(own_rows):>4} {share:6.1f} {ours_:11.1f} "
                    f"{raw_:12.1f} {ours_ / raw_:6.2f}"
                )
    ours_, raw_ = np.mean([row[3:] for row in rows if row[1]], axis=0)
    print(f"all held-out streams: {100 * ours_:.1f} beside {100 * raw_:.1f}, {ours_ / raw_:.2f}")
    confidences, rights = (np.concatenate(parts) for parts in zip(*everything))
    print("said  right  answers (held-out streams together)")
    for bin_ in reliability(confidences, rights, bins=10):
        print(f"{100 * bin_.confidence:4.0f}  {100 * bin_.right:5.1f}  {bin_.count:>7,}")


if __name__ == "__main__":
    main()
