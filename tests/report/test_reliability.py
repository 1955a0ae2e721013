from __future__ import annotations

import numpy as np

from tests.report.runs import Page, write_run
from ttgcd.report import write_report
from ttgcd.report.reliability import reliability
from ttgcd.report.run_files import RunFiles


def labelled(tmp_path, n=400):
    """Answers that are right where the method was sure, and drawn at random where it was not."""
    rng = np.random.default_rng(0)
    true, sure = rng.integers(0, 5, n), rng.random(n)
    category = np.where(rng.random(n) < sure, true, rng.integers(0, 5, n))
    out = write_run(tmp_path / "run", category, novelty=sure / 10)
    ids = RunFiles.read(out).ids
    # Labels of their own: which category they mean is found by the matching.
    return out, {name: f"label {t * 7 % 5}" for name, t in zip(ids, true)}


def test_sure_answers_are_right_more_often(tmp_path):
    out, labels = labelled(tmp_path)
    bins = reliability(RunFiles.read(out), labels)
    assert [n for _, _, n in bins] == [40] * 10
    places, right = [b[0] for b in bins], [b[1] for b in bins]
    assert places == sorted(places)
    assert np.mean(right[:3]) < 0.5 < 0.8 < np.mean(right[-3:])


def test_the_reliability_stays_on_the_page_when_it_is_drawn_again_without_labels(tmp_path):
    out, labels = labelled(tmp_path)
    write_report(out, labels=labels)
    first = Page.of(out).data["reliability"]
    write_report(out)
    assert first and Page.of(out).data["reliability"] == first


def test_without_enough_labels_there_is_no_reliability(tmp_path):
    out, labels = labelled(tmp_path)
    few = dict(list(labels.items())[:10])
    assert reliability(RunFiles.read(out), few) == []
