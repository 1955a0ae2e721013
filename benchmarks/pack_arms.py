"""What is measured on a task: the product, told and not told, and what people use instead."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.pack_tasks import Drawn
from ttgcd.discovery.estimator import CategoryDiscovery
from ttgcd.evaluation import split_accuracy

#: Labels, and what the method says about itself.
Answered = tuple[np.ndarray, dict[str, Any]]


@dataclass(frozen=True)
class Arm:
    """A column of the table."""

    title: str
    answer: Callable[[Drawn, int], Answered]
    words: bool = False
    ours: bool = False


def discovered(task: Drawn, seed: int, told: bool, words: bool) -> Answered:
    """The package's own front door; without known classes there are no anchors to give."""
    vocabulary = task.words.vectors if words and task.words is not None else None
    estimator = CategoryDiscovery(
        task.anchors if task.known else None,
        n_novel=task.novel if told else "auto",
        word_embeddings=vocabulary,
        logit_scale=task.logit_scale,
        random_state=seed,
    ).fit(task.features)
    alive = [c for c in estimator.categories_ if c.merged_into is None and c.active is not False]
    said: dict[str, Any] = {"found": sum(c.kind == "novel" for c in alive)}
    if task.known == 0:  # the first group may stand in for a known class
        said["found"] = len(alive)
    if not told:
        said["range"] = estimator._session.method.health()["novel_range"]
    return estimator.labels_, said


def k_means(task: Drawn, seed: int) -> Answered:
    """On the features as they are; told the number of all classes."""
    from sklearn.cluster import KMeans

    count = min(task.known + task.novel, len(task.features))
    return KMeans(count, n_init=5, random_state=seed).fit_predict(task.features), {}


def umap_hdbscan(task: Drawn, seed: int, least: int) -> Answered:
    """Five dimensions by cosine, as both projects' documentation advises for clustering."""
    from hdbscan import HDBSCAN
    from umap import UMAP

    low = UMAP(
        n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed
    ).fit_transform(task.features)
    return _noise_is_a_group(HDBSCAN(min_cluster_size=least).fit_predict(low))


def evoc(task: Drawn, seed: int) -> Answered:
    """As it comes."""
    from evoc import EVoC

    return _noise_is_a_group(np.asarray(EVoC(random_state=seed).fit_predict(task.features)))


def _noise_is_a_group(labels: np.ndarray) -> Answered:
    """Samples that belong to no cluster (-1) score together, as one more."""
    found = int(labels.max()) + 1
    return np.where(labels < 0, found, labels).astype(np.int64), {"found": found}


ARMS: dict[str, Arm] = {
    "told+words": Arm("L given, words", lambda t, s: discovered(t, s, True, True), True, True),
    "told": Arm("L given", lambda t, s: discovered(t, s, True, False), False, True),
    "counted+words": Arm(
        "L unknown, words", lambda t, s: discovered(t, s, False, True), True, True
    ),
    "counted": Arm("L unknown", lambda t, s: discovered(t, s, False, False), False, True),
    "kmeans": Arm("k-means told K + L", k_means),
    "umap-hdbscan-5": Arm("UMAP + HDBSCAN, 5", lambda t, s: umap_hdbscan(t, s, 5)),
    "umap-hdbscan-10": Arm("UMAP + HDBSCAN, 10", lambda t, s: umap_hdbscan(t, s, 10)),
    "evoc": Arm("EVoC", evoc),
}


def measured(task: Drawn, arm: str, seed: int) -> dict[str, Any]:
    """Accuracy in percent (All, Known, Novel), what was found, and seconds.

    ``cpu_seconds`` are those of all threads: on a busy machine they tell more.
    """
    warnings.simplefilter("ignore")
    if not ARMS[arm].ours and arm != "kmeans":
        _compiled(arm)
    began, worked = time.perf_counter(), time.process_time()
    labels, said = ARMS[arm].answer(task, seed)
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    scores = split_accuracy(labels, task.labels, task.known)
    accuracy = [None if np.isnan(s) else round(100 * float(s), 3) for s in scores]
    used = ARMS[arm].words and task.words is not None
    return {
        "samples": len(task.labels),
        "words": len(task.words.names) if used and task.words is not None else 0,
        "accuracy": accuracy,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu, 3),
        **said,
    }


@cache
def _compiled(arm: str) -> None:
    """Neighbours compile themselves at their first call: not counted."""
    rows = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    nothing = Drawn(rows, np.zeros(300, int), rows[:0], 5, None, 100.0)
    ARMS[arm].answer(nothing, 0)
