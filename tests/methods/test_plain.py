"""What people use today: zero-shot, k-means, HDBSCAN, semi-supervised k-means."""

from __future__ import annotations

import numpy as np
import pytest

from ttgcd.errors import InputError
from ttgcd.methods.base import Task
from ttgcd.methods.hdbscan import Hdbscan
from ttgcd.methods.kmeans import KMeans
from ttgcd.methods.ss_kmeans import SemiSupervisedKMeans
from ttgcd.methods.zero_shot import ZeroShot
from ttgcd.prototypes.bank import normalise
from ttgcd.testing.model import embedding_world as embeddings
from ttgcd.testing.runs import run, task_for


def blobs(per_class: int = 30, dim: int = 12, spread: float = 0.05, seed: int = 0):
    """Five tight blobs; the anchors lie near the first three."""
    rng = np.random.default_rng(seed)
    means = normalise(rng.normal(size=(5, dim)))
    labels = rng.permutation(np.repeat(np.arange(5), per_class))
    rows = normalise(means[labels] + spread * rng.normal(size=(len(labels), dim)))
    anchors = normalise(means[:3] + 0.1 * rng.normal(size=(3, dim))).astype(np.float32)
    return rows.astype(np.float32), labels, Task(("a", "b", "c"), anchors, 2)


def test_zero_shot_is_the_nearest_anchor_and_never_novel() -> None:
    task, data = task_for(None), embeddings()
    result = run(ZeroShot(), task, data)
    assert np.array_equal(result.category, (data @ task.anchors.T).argmax(axis=1))
    assert all(part.final.all() for part in result.parts)


@pytest.mark.parametrize("method", [KMeans(), SemiSupervisedKMeans(), Hdbscan()])
def test_blobs_are_found_and_the_named_ones_have_their_names(method) -> None:
    data, labels, task = blobs()
    found = run(method, task, data, size=50).category
    assert np.array_equal(found[labels < 3], labels[labels < 3])
    for novel in (3, 4):
        assert len(np.unique(found[labels == novel])) == 1
        assert found[labels == novel][0] >= 3
    assert len(np.unique(found)) == 5


def test_on_arrival_they_answer_zero_shot_provisionally() -> None:
    data, _, task = blobs()
    result = run(KMeans(), task, data, size=50)
    first = result.parts[0]
    assert not first.final.any()
    assert np.array_equal(first.category, (data[:50] @ task.anchors.T).argmax(axis=1))
    assert len(result.parts[-1]) == len(data)


def test_hdbscan_counts_by_itself() -> None:
    """Told of no novel class it finds two all the same; ids go beyond K + L - 1."""
    data, labels, task = blobs()
    told_nothing = Task(task.known, task.anchors, 0)
    method = Hdbscan()
    found = run(method, told_nothing, data).category
    assert set(found[labels >= 3]) == {3, 4}
    assert method.prototypes().shape[0] == 5


def test_hdbscan_noise_joins_the_nearest_cluster() -> None:
    data, labels, task = blobs()
    between = normalise(data[labels == 0][:1] * 0.6 + data[labels == 1][:1] * 0.4)
    found = run(Hdbscan(), task, np.concatenate([data, between]).astype(np.float32)).category
    assert found[-1] == 0


def test_hdbscan_on_a_sample_of_the_stream_agrees_on_blobs() -> None:
    data, _, task = blobs()
    whole = run(Hdbscan(), task, data).category
    part = run(Hdbscan(fit_samples=90), task, data).category
    assert np.array_equal(whole, part)


def test_confident_text_labels_hold_the_known_classes_in_ss_kmeans() -> None:
    """Known clusters keep their own ids even where a free k-means would mix them up."""
    data, labels, task = blobs(spread=0.25, seed=4)
    held = run(SemiSupervisedKMeans(), task, data).category
    free = run(KMeans(), task, data).category
    known = labels < 3
    assert (held == labels)[known].mean() >= (free == labels)[known].mean()
    assert (held == labels)[known].mean() > 0.8


def test_wrong_options_are_named() -> None:
    with pytest.raises(InputError, match="min_cluster_size"):
        Hdbscan(min_cluster_size=1)
    with pytest.raises(InputError, match="confidence"):
        SemiSupervisedKMeans(confidence=2.0)
