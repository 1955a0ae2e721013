from __future__ import annotations

import numpy as np

from tests.report.streams import batch, summarise
from ttgcd.methods.answer import Answer
from ttgcd.report import StreamSummary
from ttgcd.report.verdict import findings, headline


def level(summary: StreamSummary, **health: object) -> str:
    return headline(findings(summary, health)).level


def of(category: np.ndarray, known: int = 3, novel: int = 2) -> StreamSummary:
    summary = StreamSummary(known, novel)
    summary.write(batch(0, len(category)), Answer.make(0, category, np.ones(len(category))))
    return summary


def test_an_even_stream_is_healthy():
    health = {"inactive_known": [], "prototype_drift": [0.01] * 5, "realign_losses": [2.0, 1.0]}
    assert level(summarise(3, 2, 500), **health) == "good"


def test_a_collapse_is_bad():
    assert level(of(np.where(np.arange(500) % 20, 4, 0))) == "bad"


def test_narrowing_answers_are_pointed_out():
    index = np.arange(2000)
    found = findings(of(np.where(index < 1000, index % 5, index % 2)), {})
    assert any("narrow" in f.text and f.level == "look" for f in found)


def test_empty_novel_categories_are_pointed_out():
    found = findings(of(np.arange(300) % 4), {})
    assert any(f.text.startswith("1 of 2 novel category is empty") for f in found)


def test_method_trouble_is_pointed_out():
    summary = summarise(3, 2, 500)
    assert level(summary, realign_losses=[1.0, float("nan")]) == "bad"
    assert level(summary, realign_losses=[1.0, 2.0]) == "look"
    assert level(summary, prototype_drift=[None, 0.9]) == "look"
    assert level(summary, inactive_known=["a"]) == "look"
    assert level(summary, inactive_known=["a", "b", "c"]) == "bad"


def test_rows_without_a_final_answer_are_pointed_out():
    summary = StreamSummary(3, 2)
    summary.write(batch(0, 100), Answer.make(0, np.arange(100) % 5, np.ones(100), final=False))
    assert level(summary) == "bad"
    summary.write(None, Answer.make(0, np.arange(60) % 5, np.ones(60)))
    assert any("40 samples still wait" in f.text for f in findings(summary, {}))
