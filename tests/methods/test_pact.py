"""PACT as a whole: against a slow rewrite of Sec. 4, and at its edges."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ttgcd.bench.experiment import load_experiment
from ttgcd.errors import InputError
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.methods.registry import PRESETS, load_preset
from ttgcd.methods.zero_shot import text_says
from ttgcd.streams.base import Batch


def world(seed: int = 0, n: int = 400, classes: int = 8, dim: int = 24, known: int = 4):
    """Clusters on the sphere, anchors offset from them by a modality gap."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, dim))
    labels = rng.integers(0, classes, n)
    offset = 2.0 * rng.normal(size=dim)
    features = unit(offset + 3 * centres[labels] + 0.7 * rng.normal(size=(n, dim)))
    anchors = unit(centres[:known] - offset + 0.5 * rng.normal(size=(known, dim)))
    return features, anchors, labels


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def batches(features: np.ndarray, size: int, start: int = 0):
    for begin in range(0, len(features), size):
        part = features[begin : begin + size]
        numbers = range(start + begin, start + begin + len(part))
        yield Batch(
            ids=tuple(map(str, numbers)),
            start=start + begin,
            positions=tuple(numbers),
            next_position=start + begin + len(part),
            features=part,
        )


def task_of(anchors: np.ndarray, novel: int, **changes) -> Task:
    names = tuple(f"class {k}" for k in range(len(anchors)))
    return Task(known=names, anchors=anchors, novel=novel, **changes)


def run(method: Pact, task: Task, features: np.ndarray, size: int) -> np.ndarray:
    method.start(task)
    answer = np.full(len(features), -1)
    for rows in [*map(method.observe, batches(features, size)), method.finish()]:
        answer[rows.index] = rows.category
    return answer


def slow_pact(features, anchors, novel, seed, warmup, size, evidence_min=1.5, eta=0.05, lam=0.1):
    """Section 4 without an encoder, one sample at a time, in double precision."""
    features, anchors = features.astype(np.float64), anchors.astype(np.float64)
    K = len(anchors)

    def text(v):
        logits = 100 * (anchors @ v)
        p = np.exp(logits - logits.max())
        p /= p.sum()
        best = sorted(p, reverse=True)
        return int(np.argmax(p)), best[0] - best[1]

    buffer = features[:warmup]
    said = [text(v) for v in buffer]
    mu, e = np.zeros((K, features.shape[1])), np.zeros(K)
    for v, (label, weight) in zip(buffer, said):
        mu[label] += weight * v
        e[label] += weight
    mu = np.array([m / np.linalg.norm(m) if m.any() else m for m in mu])
    centres = [mu[k] for k in range(K) if e[k] >= evidence_min]
    rng, nu, picked = np.random.default_rng([seed, 0x5EED]), [], []
    for _ in range(novel):
        d2 = np.array([min((2 - 2 * v @ c for c in centres + nu), default=1.0) for v in buffer])
        d2 = np.maximum(d2, 0)
        d2[picked] = 0
        draw = rng.choice(len(buffer), size=1, p=d2 / d2.sum())[0]
        picked.append(draw)
        nu.append(buffer[draw])
    nu = np.array(nu)

    def nearest(v):
        options = [(mu[k] @ v, k) for k in range(K) if e[k] >= evidence_min]
        options += [(nu[j] @ v, K + j) for j in range(len(nu))]
        return max(options, key=lambda o: (o[0], -o[1]))[1]

    answer = []
    for v, (label, _) in zip(buffer, said):
        best = nearest(v)
        answer.append(best if best >= K else label)
    for begin in range(warmup, len(features), size):
        batch = features[begin : begin + size]
        given = [nearest(v) for v in batch]
        said = [text(v) for v in batch]
        answer.extend(given)
        for k in range(K):
            total = sum((w * v for v, (y, w) in zip(batch, said) if y == k), np.zeros(len(mu[0])))
            if total.any():
                mixed = (1 - eta) * mu[k] + eta * total / np.linalg.norm(total)
                mu[k] = mixed / np.linalg.norm(mixed)
            e[k] += sum(w for y, w in said if y == k)
        for j in range(len(nu)):
            mine = [v for v, c in zip(batch, given) if c == K + j]
            if mine:
                total = np.sum(mine, axis=0)
                mixed = (1 - lam) * nu[j] + lam * total / np.linalg.norm(total)
                nu[j] = mixed / np.linalg.norm(mixed)
    return np.array(answer), mu, nu, e


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_streaming_stage_equals_the_slow_rewrite(seed: int) -> None:
    features, anchors, _ = world(seed)
    method = Pact(warmup=128)
    found = run(method, task_of(anchors, 4, seed=seed), features, 32)
    expected, mu, nu, e = slow_pact(features, anchors, 4, seed, 128, 32)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(method.bank.known, mu, atol=1e-5)
    np.testing.assert_allclose(method.bank.novel, nu, atol=1e-5)
    np.testing.assert_allclose(method.bank.evidence, e, atol=1e-4)


def test_buffer_samples_are_answered_at_once_and_revised_when_the_warmup_ends() -> None:
    features, anchors, _ = world()
    method = Pact(warmup=64)
    method.start(task_of(anchors, 4))
    first, second, third = list(batches(features[:96], 32))
    early = method.observe(first)
    assert early.index.tolist() == list(range(32)) and not early.final.any()
    assert (early.category < 4).all()
    revised = method.observe(second)
    assert revised.index.tolist() == list(range(64)) and revised.final.all()
    assert (revised.category >= 4).any()
    later = method.observe(third)
    assert later.index.tolist() == list(range(64, 96)) and later.final.all()


def test_a_batch_across_the_end_of_the_buffer_is_split() -> None:
    features, anchors, _ = world()
    split = run(Pact(warmup=100), task_of(anchors, 4), features[:150], 50)
    across = run(Pact(warmup=100), task_of(anchors, 4), features[:150], 150)
    np.testing.assert_array_equal(split, across)


def test_the_three_readings_of_the_buffer() -> None:
    features, anchors, _ = world()
    task = task_of(anchors, 4)
    names = ("zero-shot", "novel-or-zero-shot", "nearest")
    first, second, third = (
        run(Pact(warmup=400, buffer_labels=name), task, features, 100) for name in names
    )
    text_label = (features @ anchors.T).argmax(axis=1)
    np.testing.assert_array_equal(first, text_label)
    novel = third >= 4
    assert novel.any() and not novel.all()
    np.testing.assert_array_equal(second, np.where(novel, third, text_label))


def test_a_stream_shorter_than_the_buffer_is_finished_on_what_is_there() -> None:
    features, anchors, _ = world(n=50)
    whole = run(Pact(warmup=50), task_of(anchors, 3), features, 25)
    short = run(Pact(warmup=1024), task_of(anchors, 3), features, 25)
    np.testing.assert_array_equal(short, whole)


def test_no_stream_at_all_is_an_empty_answer() -> None:
    _, anchors, _ = world()
    method = Pact()
    method.start(task_of(anchors, 3))
    assert len(method.finish()) == 0


def test_known_only_when_no_novel_is_wanted() -> None:
    features, anchors, _ = world()
    assert (run(Pact(warmup=64), task_of(anchors, 0), features, 64) < 4).all()


def test_a_single_known_class() -> None:
    features, anchors, _ = world()
    found = run(Pact(warmup=64), task_of(anchors[:1], 4), features, 64)
    assert set(found) <= set(range(5))


def test_without_any_active_class_novel_prototypes_take_all() -> None:
    features, anchors, _ = world()
    method = Pact(warmup=64, evidence_min=1e6)
    found = run(method, task_of(anchors, 4), features, 64)
    assert (found[64:] >= 4).all()
    assert not method.bank.active.any()


def test_without_any_prototype_the_text_label_is_given() -> None:
    features, anchors, _ = world()
    found = run(Pact(warmup=64, evidence_min=1e6), task_of(anchors, 0), features, 64)
    np.testing.assert_array_equal(found, (features @ anchors.T).argmax(axis=1))


def test_all_equal_features_and_anchors_give_zero_weights_and_survive() -> None:
    features = np.repeat(unit(np.ones((1, 24))), 40, axis=0)
    anchors = np.repeat(unit(np.ones((1, 24))), 3, axis=0)
    found = run(Pact(warmup=16), task_of(anchors, 2), features, 8)
    assert np.isin(found, range(5)).all()


def test_a_class_is_activated_by_evidence_and_then_stays() -> None:
    features, anchors, _ = world()
    method = Pact(warmup=8)
    method.start(task_of(anchors, 2))
    history = []
    for batch in batches(features, 8):
        method.observe(batch)
        history.append(method.bank.active.copy())
    assert not history[0].all() and history[-1].all()
    for earlier, later in pairwise(history):
        assert (later | ~earlier).all()


def test_text_prototypes_send_everything_to_novel_ids_across_a_modality_gap() -> None:
    features, anchors, _ = world()
    found = run(Pact(warmup=64, known_prototypes="text"), task_of(anchors, 4), features, 64)
    assert (found[64:] >= 4).mean() > 0.95


def test_predict_is_pure_and_agrees_with_observe() -> None:
    features, anchors, _ = world()
    method = Pact(warmup=64)
    method.start(task_of(anchors, 4))
    first, second, third = list(batches(features[:96], 32))
    method.observe(first), method.observe(second)
    before = method.state_dict()
    predicted = method.predict(third)
    after = method.state_dict()
    for key in before.arrays:
        np.testing.assert_array_equal(before.arrays[key], after.arrays[key])
    assert before.values == after.values
    np.testing.assert_array_equal(predicted.category, method.observe(third).category)


def test_a_named_category_follows_its_text_like_a_known_class() -> None:
    features, anchors, _ = world()
    method = load_preset("robust", warmup=200)
    task = task_of(anchors, novel=4)
    run(method, task, features[:200], 20)
    given = method.predict(next(iter(batches(features[200:], 200)))).category
    category = int(np.bincount(given[given >= 4]).argmax())
    own = unit(features[200:][given == category].mean(axis=0, keepdims=True))[0]
    assert method.bank is not None
    before = method.bank.novel.copy()
    method.promote({category: own})
    batch = next(iter(batches(features[200:260], 60, start=200)))
    says = np.concatenate([task.anchors, own[None]])
    text, margin = text_says(task_of(says, novel=4), batch.features)
    method.observe(batch)
    wins = text == 4
    expected = unit((margin[wins, None] * batch.features[wins]).sum(axis=0, keepdims=True))[0]
    moved = unit((0.95 * before[category - 4] + 0.05 * expected)[None])[0]
    assert wins.any() and np.allclose(method.bank.novel[category - 4], moved, atol=1e-5)


def test_robust_preset_changes_only_what_it_says() -> None:
    paper, robust = load_preset("paper").config(), load_preset("robust").config()
    changed = {key for key in paper if paper[key] != robust[key]}
    assert changed == {"seed_candidates", "refine_iterations", "seed_restarts"}
    assert Pact().config() == paper


def test_the_bench_measures_the_robust_preset_as_it_is() -> None:
    rows = {v.label: v for v in load_experiment("main").variants}
    assert rows["PACT (robust seeds)"].config == PRESETS["robust"].config
    assert rows["PACT"].config == PRESETS["paper"].config == {}


def test_the_defaults_are_the_papers_table() -> None:
    config = load_preset("paper").config()
    wanted = {
        "warmup": 1024,
        "epochs": 30,
        "lr": 1e-2,
        "evidence_min": 1.5,
        "known_rate": 0.05,
        "novel_rate": 0.10,
        "realign_batch_size": 128,
    }
    assert {key: config[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("warmup", 1),
        ("epochs", -1),
        ("lr", float("nan")),
        ("known_rate", 0.0),
        ("novel_rate", 1.1),
        ("optimiser", "lion"),
        ("buffer_labels", "R4"),
        ("known_prototypes", "both"),
    ],
)
def test_bad_configuration_names_the_field(field: str, value: object) -> None:
    with pytest.raises(InputError, match=field):
        Pact(**{field: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"known": (), "novel": 0}, "nothing to sort into"),
        ({"known": ()}, "one row a class"),
        ({"novel": -1}, "0 or more"),
        ({"known": ("a",)}, "one row a class"),
        ({"anchors": np.full((4, 24), np.nan, np.float32)}, "NaN"),
    ],
)
def test_bad_tasks_are_refused(changes: dict, message: str) -> None:
    _, anchors, _ = world()
    good = {"known": tuple("abcd"), "anchors": anchors, "novel": 2}
    with pytest.raises(InputError, match=message):
        Task(**{**good, **changes})
