"""What a better objective than the default method's own could bring, and what was tried for it.

    python benchmarks/objective.py --features FOLDER [--streams line emoji] [--seeds 1]

FOLDER holds the features that benchmarks/discovery.py made. One fit to the first 3,000 samples of
each development stream, L given, then one change; printed is the change of All in points beside the
fit as it is. Rows marked with a star use the true classes. benchmarks/objective_images.py does the
same for what encodes images again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from discovery import DEVELOPMENT

from ttgcd.evaluation import split_accuracy
from ttgcd.prototypes.calibration import Standard, unit
from ttgcd.prototypes.partition import centres_of, group_sums, smooth
from ttgcd.prototypes.refit import TEXT_SHARE, Fitted, Restarts, fit
from ttgcd.prototypes.text_evidence import Texts

RESTARTS = Restarts(8, 4)


@dataclass
class Case:
    """A stream in one order, with the fit as it is."""

    order: np.ndarray
    rows: np.ndarray
    true: np.ndarray
    texts: Texts
    novel: int
    seed: int

    def fit(self, rows: np.ndarray | None = None) -> Fitted:
        rows = self.rows if rows is None else rows
        return fit(rows, self.texts, self.novel, (self.seed, 1), RESTARTS)

    def __post_init__(self) -> None:
        self.n_known = len(self.texts.anchors)
        self.count = self.n_known + self.novel
        self.fitted = self.fit()
        self.mapped = self.fitted.model.space(self.rows)
        self.added = self.fitted.model.bonus(self.rows)
        self.centres, self.labels = self.fitted.model.centres, self.fitted.labels

    def all(self, labels: np.ndarray) -> float:
        return 100 * float(split_accuracy(labels, self.true, self.n_known).all)


def cases(
    folder: Path, benchmark: str, stream: str, seeds: int, most: int = 3000
) -> Iterator[Case]:
    data = np.load(folder / f"{benchmark}-{stream}.npz")
    texts = Texts.of(data["anchors"], data["words"][:1500], float(data["scale"]))
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(data["labels"]))[:most]
        labels, n_known = data["labels"][order], len(texts.anchors)
        novel = np.unique(labels[labels >= n_known])
        true = np.where(labels < n_known, labels, n_known + np.searchsorted(novel, labels))
        yield Case(order, data["features"][order], true, texts, len(novel), seed)


# -- ideas on features: a case -> labels -----------------------------------------------------------


def explaining(said: np.ndarray, explained: np.ndarray, count: int) -> list[int]:
    """Columns of ``said``, greedily: each adds most to the best that is said about every row."""
    chosen: list[int] = []
    for _ in range(min(count, said.shape[1])):
        gains = np.maximum(said - explained[:, None], 0).sum(axis=0)
        chosen.append(int(gains.argmax()))
        explained = np.maximum(explained, said[:, chosen[-1]])
    return chosen


def from_words(case: Case) -> Fitted:
    """Novel categories begin at the words that explain most of what no name explains; texts are
    asked about the mean of a row and its three neighbours."""
    near = np.empty((len(case.rows), 3), np.int64)
    for start in range(0, len(near), 1024):
        part = case.mapped[start : start + 1024] @ case.mapped.T
        part[np.arange(len(part)), start + np.arange(len(part))] = -9
        near[start : start + 1024] = np.argpartition(-part, 2, axis=1)[:, :3]
    calm = (case.rows + case.rows[near].sum(axis=1)) / 4
    names, words = (Standard.of(calm, t)(calm) for t in (case.texts.anchors, case.texts.words))
    some = np.random.default_rng(case.seed).permutation(len(calm))[:2048]
    chosen = explaining(words[some], names[some].max(axis=1), case.novel)
    says = np.concatenate([names, words[:, chosen]], axis=1).argmax(axis=1)
    trust, seed = case.fitted.trust, (case.seed, 1)
    return fit(case.rows, case.texts, case.novel, seed, RESTARTS, says, case.novel, trust)


def worth(case: Case, fitted: Fitted) -> float:
    """How well samples fit to their categories, and how often texts alone say the same."""
    value = float(fitted.model(case.rows).max(axis=1).mean())
    novel = fitted.labels >= case.n_known
    says = fitted.model.bonus(case.rows[novel]).argmax(axis=1)
    return value + 0.1 * float((says == fitted.labels[novel]).mean())


def word_starts(case: Case) -> dict[str, np.ndarray]:
    """Always where words are trusted, or only if it is worth more."""
    if case.fitted.trust.share < TEXT_SHARE:
        return dict.fromkeys(WORD_STARTS, case.labels)
    new = from_words(case)
    best = max(case.fitted, new, key=lambda fitted: worth(case, fitted))
    return dict(zip(WORD_STARTS, (new.labels, best.labels), strict=True))


def true_start(case: Case) -> np.ndarray:
    trust, seed = case.fitted.trust, (case.seed, 1)
    start = case.true
    return fit(case.rows, case.texts, case.novel, seed, RESTARTS, start, case.novel, trust).labels


def true_means(case: Case) -> np.ndarray:
    """Each fifth by the class means of the others, without texts."""
    fold, out = np.arange(len(case.true)) % 5, np.empty(len(case.true), np.int64)
    for k in range(5):
        rest = fold != k
        means = centres_of(case.mapped[rest], case.true[rest], case.count)
        out[~rest] = (case.mapped[~rest] @ means.T).argmax(axis=1)
    return out


def mixture(case: Case) -> np.ndarray:
    """Soft EM, one variance and prior a category, shrunk to the common one by 20 samples."""
    here = np.eye(case.count, dtype=np.float32)[case.labels]
    labels, centres = case.labels, case.centres
    for _ in range(8):
        centres = np.where(here.sum(0)[:, None] > 1e-6, unit(here.T @ case.mapped), centres)
        away, size = 2 - 2 * case.mapped @ centres.T, here.sum(axis=0)
        total = (here * away).sum(axis=0)
        common = total.sum() / size.sum()
        variance = (total + 20 * common) / (size + 20)
        rest = case.mapped - centres[labels]
        values = np.linalg.eigvalsh(rest.T @ rest)
        freedom = values.sum() ** 2 / (values**2).sum()
        log = -freedom / 2 * (away / variance + np.log(variance)) + case.added * freedom / common
        log += np.log((size + 1) / (size.sum() + case.count))
        here = np.exp(log - log.max(axis=1, keepdims=True))
        here /= here.sum(axis=1, keepdims=True)
        labels = log.argmax(axis=1)
    return labels


def fading_means(case: Case) -> np.ndarray:
    """Means that are short where evidence is thin (five samples of prior), Euclidean scores."""
    labels = case.labels
    for _ in range(15):
        size = np.bincount(labels, minlength=case.count)[:, None]
        means = group_sums(case.mapped, labels, case.count) / (size + 5)
        length = np.linalg.norm(means, axis=1)
        scores = (case.mapped @ means.T - length**2 / 2) / length[length > 0].mean()
        labels = (scores + case.added).argmax(axis=1)
    return labels


def balanced(case: Case) -> np.ndarray:
    """Large categories pay, small ones are paid."""
    labels, centres = case.labels, case.centres
    for _ in range(15):
        size = np.bincount(labels, minlength=case.count)
        price = 0.03 * np.log((size + 1) / (size.mean() + 1))
        labels = (case.mapped @ centres.T + case.added - price).argmax(axis=1)
        found = centres_of(case.mapped, labels, case.count)
        centres = np.where(found.any(axis=1, keepdims=True), found, centres)
    return labels


def smoothed_answers(case: Case) -> np.ndarray:
    """Scores are those of a row and its neighbours."""
    return (smooth(case.mapped) @ case.centres.T + case.added).argmax(axis=1)


def without_itself(case: Case) -> np.ndarray:
    """A row is compared with its own centre as if it were not in it."""
    labels, place = case.labels, np.arange(len(case.labels))
    for _ in range(15):
        sums = group_sums(case.mapped, labels, case.count)
        scores = case.mapped @ unit(sums).T
        rest = sums[labels] - case.mapped
        scores[place, labels] = np.einsum("nd,nd->n", case.mapped, unit(rest))
        labels = (scores + case.added).argmax(axis=1)
    return labels


WORD_STARTS = (
    "start at words where they are trusted",
    "the same, if it is worth more with its words",
)
IDEAS: dict[str, Callable[[Case], np.ndarray]] = {
    "* clusters begin at the true means": true_start,
    "* nearest true mean, of the other samples": true_means,
    "mixture: spread and prior a category, soft": mixture,
    "means that fade with evidence": fading_means,
    "balanced sizes": balanced,
    "answers smoothed over neighbours": smoothed_answers,
    "own centre without the sample itself": without_itself,
}


# -- table ----------------------------------------------------------------------------------------

BENCHMARK = {stream: benchmark for benchmark, names in DEVELOPMENT.items() for stream in names}
AS_IT_IS = "as it is (All)"


class Table:
    """Changes by idea and stream."""

    def __init__(self, streams: Sequence[str]) -> None:
        self.streams = streams
        self.rows: dict[str, dict[str, list[float]]] = {}

    def add(self, idea: str, stream: str, value: float) -> None:
        print(f"{stream}, {idea}: {value:.2f}", file=sys.stderr, flush=True)
        self.rows.setdefault(idea, {}).setdefault(stream, []).append(value)

    def show(self, more: dict[str, list[float]] | None = None, title: str = "") -> None:
        """``more`` is one further column, by idea."""
        names = self.streams
        print("| | " + " | ".join(names) + " | mean |" + (f" {title} |" if more else ""))
        print("|---|" + "---:|" * (len(names) + 1 + bool(more)))
        for idea, row in self.rows.items():
            means = [float(np.mean(row[stream])) for stream in names]
            sign = "" if idea == AS_IT_IS else "+"
            cells = [f"{x:{sign}.1f}" for x in [*means, float(np.mean(means))]]
            if more:
                cells.append(f"{np.mean(more[idea]):.1f}" if idea in more else "")
            print(f"| {idea} | " + " | ".join(cells) + " |")


def arguments(seeds: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--streams", nargs="+", choices=BENCHMARK, default=list(BENCHMARK))
    return parser


def main() -> None:
    args = arguments(seeds=3).parse_args()
    table = Table(args.streams)
    for stream in args.streams:
        for case in cases(args.features, BENCHMARK[stream], stream, args.seeds):
            base = case.all(case.labels)
            table.add(AS_IT_IS, stream, base)
            for name, idea in IDEAS.items():
                table.add(name, stream, case.all(idea(case)) - base)
            for name, labels in word_starts(case).items():
                table.add(name, stream, case.all(labels) - base)
    table.show()


if __name__ == "__main__":
    main()
