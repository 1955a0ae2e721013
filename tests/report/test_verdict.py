from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.report.runs import write_run
from ttgcd.report.facts import Facts
from ttgcd.report.findings import Finding, facts_of, findings
from ttgcd.report.run_files import RunFiles
from ttgcd.report.signs import Signs, read_signs
from ttgcd.report.verdict import Judgement, Verdict, judge


def found(out: Path, category: np.ndarray, **changes) -> list[Finding]:
    run = RunFiles.read(write_run(out, category, **changes))
    return findings(run, facts_of(run))


def level(out: Path, category: np.ndarray, **changes) -> str:
    return judge(facts_of(RunFiles.read(write_run(out, category, **changes)))).level


def even(n: int = 500, categories: int = 5) -> np.ndarray:
    return np.random.default_rng(0).integers(0, categories, n)


def test_an_even_stream_is_healthy(tmp_path):
    health = {"inactive_known": [], "prototype_drift": [0.01] * 5, "realign_losses": [2.0, 1.0]}
    scores = {"all": 90.0, "known": 95.0, "novel": 80.0}
    assert level(tmp_path, even(), warmup=100, health=health, scores=scores) == "good"


def test_a_collapse_is_bad(tmp_path):
    assert level(tmp_path, np.where(np.arange(500) % 20, 4, 0)) == "bad"


def test_narrowing_answers_are_pointed_out(tmp_path):
    index = np.arange(2000)
    said = found(tmp_path, np.where(index < 1000, index % 5, index % 2))
    assert any("narrow" in f.text and f.level == "look" for f in said)


def test_empty_new_categories_are_pointed_out(tmp_path):
    assert any("1 of 2 new categories is empty" in f.text for f in found(tmp_path, even(300, 4)))


def test_categories_that_the_method_gave_up_are_not_called_empty(tmp_path):
    out = write_run(tmp_path, even(300, 4))
    file = out / "categories.json"
    content = json.loads(file.read_text())
    content["categories"][4]["active"] = False
    file.write_text(json.dumps(content))
    run = RunFiles.read(out)
    assert not any("empty" in f.text for f in findings(run, facts_of(run)))


@pytest.mark.parametrize(
    ("health", "expected"),
    [
        ({"realign_losses": [1.0, float("nan")]}, "bad"),
        ({"realign_losses": [1.0, 2.0]}, "look"),
        ({"prototype_drift": [None, 0.9]}, "look"),
        ({"inactive_known": ["a"]}, "look"),
        ({"inactive_known": ["a", "b", "c"]}, "bad"),
        ({"warmed_up": False}, "look"),
    ],
)
def test_what_the_method_says_of_itself_counts(tmp_path, health, expected):
    assert level(tmp_path, even(), health=health) == expected


def test_labels_that_contradict_overrule_every_other_sign(tmp_path):
    assert level(tmp_path, even(), scores={"all": 20.0, "known": 90.0}) == "bad"
    assert level(tmp_path, even(), scores={"all": 80.0, "known": 40.0}) == "bad"
    assert level(tmp_path, even(), scores={"all": 55.0, "known": 80.0}) == "look"


def test_a_buffer_unlike_the_rest_is_seen_by_the_categories(tmp_path):
    assert level(tmp_path, np.sort(even()), warmup=200) == "bad"
    assert level(tmp_path, even(), warmup=200) == "good"


def test_a_buffer_unlike_the_rest_is_seen_by_how_well_later_images_fit(tmp_path):
    rng = np.random.default_rng(1)
    score = rng.normal(0.7, 0.1, 500)
    assert level(tmp_path, even(), score=score, warmup=200) == "good"
    score[200:] -= 0.1
    assert level(tmp_path, even(), score=score, warmup=200) == "bad"


def test_chance_alone_raises_no_alarm_about_the_buffer(tmp_path):
    for seed in range(20):
        category = np.random.default_rng(seed).integers(0, 40, 600)
        said = found(tmp_path, category, known=[str(i) for i in range(20)], novel=20, warmup=100)
        assert not any("unlike the rest" in f.text for f in said)


def test_folders_that_the_buffer_never_saw_are_named(tmp_path):
    ids = [f"{'early' if i < 200 else 'late'}/{i}.png" for i in range(500)]
    said = found(tmp_path, even(), ids=ids, warmup=200)
    assert any("late" in f.text and "--in-order" in f.text for f in said)


def test_known_classes_that_came_after_the_buffer_are_named(tmp_path):
    category = even()
    category[:200] = np.where(category[:200] == 2, 0, category[:200])
    said = found(tmp_path, category, warmup=200)
    assert any("1 known class was not among the first 200 images: c" in f.text for f in said)


@pytest.mark.parametrize(("novel", "expected"), [(200, "bad"), (60, "look")])
def test_nearly_as_many_categories_as_images_is_no_grouping(tmp_path, novel, expected):
    category = even(315, 3 + novel)
    said = found(tmp_path, category, novel=novel)
    assert any("too many to mean anything" in f.text and f.level == expected for f in said)


def test_many_files_that_could_not_be_read_are_pointed_out(tmp_path):
    lost = [(f"{i}.png", "damaged") for i in range(20)]
    assert any("could not be read" in f.text for f in found(tmp_path, even(300), rejected=lost))


# -- the rules, each from facts alone -------------------------------------------------------------

NAMES = tuple("abcdefghij")
#: A run of which nothing is wrong.
SOUND = Facts(
    500,
    NAMES,
    signs=Signs(0.8, 0.85, 0.5, (0.85,) * 10, (0.95,) * 10, 0.5),
    reliability=0.9,
    novel=12,
    novel_range=(9, 15),
    novel_given=False,
)


def verdict(**changes: object) -> Verdict:
    return judge(replace(SOUND, **changes)).verdict


def signs(**changes: object) -> Signs:
    return replace(SOUND.signs, **changes)


def test_the_verdict_follows_from_the_facts() -> None:
    poor = signs(known_confidence=0.15, names=(0.1,) * 9 + (0.7,))
    assert verdict() is Verdict.FIT
    assert verdict(signs=poor, reliability=0.06) is Verdict.NAMES
    assert verdict(signs=poor, reliability=None) is Verdict.NAMES
    unsure = signs(known_confidence=0.45, names=(0.45,) * 10)
    assert verdict(signs=unsure, reliability=0.05) is Verdict.NAMES
    assert verdict(signs=unsure, reliability=0.2) is Verdict.SOME_NAMES
    half = signs(known_confidence=0.5, names=(0.9,) * 5 + (0.1,) * 5)
    assert verdict(signs=half, reliability=0.5) is Verdict.SOME_NAMES
    assert verdict(count_judged=False) is Verdict.GUESS
    assert verdict(count_judged=False, novel_given=True) is Verdict.FIT
    assert verdict(late=("a",)) is Verdict.SORTED
    assert verdict(later_folders=("late",)) is Verdict.SORTED
    assert verdict(samples=99) is Verdict.FEW
    assert verdict(names=("a",), signs=signs(names=(0.9,)), reliability=None) is Verdict.ONE_NAME
    assert verdict(signs=signs(known_confidence=None, known_share=0.0)) is Verdict.ABSENT
    assert verdict(unevidenced=NAMES) is Verdict.NAMES
    assert verdict(signs=signs(structure=0.03)) is Verdict.NO_GROUPS
    assert verdict(faults=("Some prototypes are not finite numbers.",)) is Verdict.BROKEN
    assert verdict(right_names=20.0) is Verdict.LABELS
    assert verdict(signs=signs(confidence=0.4)) is Verdict.LOOK


def test_a_count_that_leaves_room_for_nothing_new_says_so() -> None:
    assert "new" not in judge(SOUND).sentence
    maybe = replace(SOUND, novel=3, novel_range=(0, 5))
    assert "may be nothing new" in judge(maybe).sentence
    assert "may be" not in judge(replace(maybe, novel_given=True)).sentence
    assert "nothing new was found" in judge(replace(SOUND, novel=0)).sentence


def test_without_names_the_verdict_speaks_of_groups_only() -> None:
    none = {"names": (), "signs": Signs(structure=0.5), "reliability": None}
    assert verdict(**none) is Verdict.GROUPS
    for changes in ({}, {"count_judged": False}, {"signs": Signs(structure=0.03)}, {"samples": 40}):
        said = judge(replace(SOUND, **{**none, **changes}))
        assert "group" in said.sentence
        assert "class" not in said.sentence and "new" not in said.sentence
        assert "names" not in said.sentence or said.verdict is Verdict.GROUPS


def test_a_judgement_comes_back_from_its_json_as_it_was() -> None:
    for changes in ({}, {"samples": 20}, {"late": ("a",)}):
        said = judge(replace(SOUND, **changes))
        back = Judgement.from_json(json.loads(json.dumps(said.as_json())))
        assert back == said and back.text().startswith(f"verdict: {said.sentence}\n")


def test_some_names_are_listed_the_most_doubtful_first() -> None:
    half = signs(known_confidence=0.5, names=(0.9,) * 7 + (0.2, 0.05, 0.1))
    assert "3 of 10 names do not fit these images: i, j, h." in judge(
        replace(SOUND, signs=half)
    ).sentence  # fmt: skip


def test_a_name_that_no_image_stands_out_to_needs_more_confidence() -> None:
    so = signs(names=(0.6,) * 10, known_confidence=0.6)
    assert verdict(signs=replace(so, standing_out=(0.9,) * 10)) is Verdict.FIT
    assert verdict(signs=replace(so, standing_out=(0.3,) * 10)) is Verdict.SOME_NAMES
    sure = replace(so, names=(0.9,) * 10, standing_out=(0.3,) * 10)
    assert verdict(signs=sure) is Verdict.FIT


def test_labels_that_bear_a_run_out_overrule_the_signs_against_its_names() -> None:
    poor = signs(known_confidence=0.15, names=(0.1,) * 10)
    said = {"signs": poor, "reliability": 0.06, "right_all": 90.0}
    assert verdict(**said, right_names=95.0) is Verdict.FIT
    assert verdict(**said, right_names=60.0) is Verdict.NAMES
    assert verdict(late=("a",), right_names=20.0) is Verdict.LABELS


def test_names_with_few_answers_are_not_judged() -> None:
    category = np.array([0, 0, 0, 1, 1, 2])
    rows = np.eye(6, dtype=np.float32)
    found = read_signs(category, np.full(6, 0.9), rows, rows[:2])
    assert found.names == (pytest.approx(0.9), None) and found.structure is None
    assert found.known_share == pytest.approx(5 / 6)
    assert Signs.from_json(json.loads(json.dumps(found.as_json()))) == found
