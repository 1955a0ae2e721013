from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from tests.report.runs import write_run
from ttgcd.report.course import course, entropy, seed_rows
from ttgcd.report.run_files import RunFiles


def made(tmp_path, n=700, **changes) -> RunFiles:
    rng = np.random.default_rng(0)
    changes = {"score": rng.uniform(0.2, 0.9, n), **changes}
    return RunFiles.read(write_run(tmp_path, rng.integers(0, 5, n), **changes))


def test_steps_against_a_slow_reference(tmp_path):
    run = made(tmp_path)
    went = course(run)
    assert went.edges[0] == 0 and went.edges[-1] == 700 and len(went.edges) == 11
    assert min(np.diff(went.edges)) >= 64  # a few last samples make no step of their own
    for i, (start, end) in enumerate(zip(went.edges[:-1], went.edges[1:])):
        part, score = run.category[start:end].tolist(), run.score[start:end]
        novel = np.array(part) >= 3
        shares = [count / len(part) for count in Counter(part).values()]
        assert went.novel_share[i] == pytest.approx(novel.mean())
        assert went.fit_novel[i] == pytest.approx(score[novel].mean())
        assert went.fit_known[i] == pytest.approx(score[~novel].mean())
        assert went.evenly_used[i] == pytest.approx(math.exp(-sum(p * math.log(p) for p in shares)))


def test_a_category_is_born_where_it_is_first_seen(tmp_path):
    run = RunFiles.read(write_run(tmp_path, np.array([0, 0, 3, 1, 3, 4, 1, 4])))
    went = course(run)
    assert went.births_known.tolist() == [0, 3] and went.births_novel.tolist() == [2, 5]


def test_only_samples_of_the_buffer_can_be_seeds(tmp_path):
    score = np.full(700, 0.5)
    score[[10, 600]] = 1.0
    category = np.full(700, 4)
    run = RunFiles.read(write_run(tmp_path, category, score=score, warmup=100))
    assert np.flatnonzero(seed_rows(run)).tolist() == [10]
    assert course(run).fit_novel[0] == pytest.approx(0.5)


def test_a_step_without_new_samples_has_no_fit(tmp_path):
    run = RunFiles.read(write_run(tmp_path, np.zeros(200, int)))
    assert np.isnan(course(run).fit_novel).all() and not course(run).births_novel.size


def test_the_entropy_of_nothing_is_zero():
    assert entropy(np.zeros((1, 4))).tolist() == [0.0]
    assert entropy(np.array([[2, 2, 0, 0]]))[0] == pytest.approx(math.log(2))
