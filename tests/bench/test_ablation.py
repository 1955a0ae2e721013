"""`python -m benchmarks.ablation`: the default method without each of its ingredients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks.ablation import main, tables
from benchmarks.ingredients import INGREDIENTS, TOLD, without
from benchmarks.pack_arms import measured
from benchmarks.pack_tasks import TaskKey, draw
from ttgcd.bench.packs import Pack, Words, write_pack, write_words
from ttgcd.prototypes.census import take_census
from ttgcd.prototypes.refit import Judge, Restarts, fit
from ttgcd.prototypes.text_evidence import Texts

NAMES = ("cat", "dog", "owl", "fox", "elk", "bat")
WORDS = (
    "pan",
    "fork",
    "lamp",
    "sofa",
    "desk",
    "sock",
    "shoe",
    "door",
    "wall",
    "tree",
    "oak",
    "jar",
)
RESTARTS = Restarts(2, 1)


def _pack(seed: int, noise: float = 0.22) -> tuple[Pack, Words]:
    """Six classes of unlike size that overlap, texts that are a little wrong, and words."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(6), [10, 40, 15, 25, 12, 30]))
    axes = np.eye(6, 16) + 0.5 * np.eye(16)[15]
    rows = axes[labels] + noise * rng.normal(size=(len(labels), 16))
    texts = axes + 0.15 * rng.normal(size=(6, 16))
    words = np.concatenate([axes + 0.3 * rng.normal(size=(6, 16)), rng.normal(size=(6, 16))])
    spoken = Words(WORDS, words.astype(np.float32))
    return Pack("animals", rows, labels, texts, NAMES, "toy"), spoken


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pack, words = _pack(0)
    write_pack(tmp_path, pack)
    write_words(tmp_path, "toy", words)
    return tmp_path


def rows_in(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_everything_is_left_out_once_printed_and_gone_on_with(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    command = [str(folder), "--only", "*:3+3,*:0+6"]
    page = folder / "PAGE.md"
    page.write_text("before\n<!-- measured -->\nold\n<!-- end of measured -->\nafter\n")
    assert main([*command, "--page", "PAGE.md"]) == 0
    path = folder / "ablation.jsonl"
    rows = rows_in(path)
    got = {(row["left_out"], row["arm"]) for row in rows if row["known"]}
    assert got == {(what, arm) for what, one in INGREDIENTS.items() for arm in one.arms}
    nameless = {row["left_out"] for row in rows if not row["known"]}
    assert nameless == {"nothing", "apart", "near", "thinning", "nulls"}
    said = capsys.readouterr().out
    for what in INGREDIENTS:
        places = 2 if what == "nothing" else 1
        assert said.count(f"\n| {what} | ") == places
    assert "old" not in page.read_text() and "| Ward tree | " in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
    # What is remembered from one ingredient to the next changes nothing.
    task = TaskKey(folder, "animals", 3, 3)
    for what, arm in (("nothing", "counted+words"), ("nulls", "counted"), ("Ward tree", "told")):
        with without(what):
            plain = measured(draw(task, 0), arm, 0)
        row = next(r for r in rows if (r["left_out"], r["arm"], r["known"]) == (what, arm, 3))
        assert (row["accuracy"], row["found"]) == (plain["accuracy"], plain["found"])
    # A line that was cut short is measured again, all others stay as they are.
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:20])
    assert main(command) == 0
    assert f"1 to measure, {len(rows) - 1} in" in capsys.readouterr().out
    assert rows_in(path) == rows


def _fitted(seed: int, left_out: str) -> np.ndarray:
    """What the starts are worth, and scores of the rows: two classes known and four novel ones."""
    pack, words = _pack(seed)
    texts = Texts.of(pack.texts[:2], words.vectors, 20.0)
    worths: list[float] = []
    with without(left_out):
        worth = Judge.worth

        def heard(*args: Any) -> float:
            worths.append(worth(*args))
            return worths[-1]

        with patch.object(Judge, "worth", heard):
            model = fit(pack.features, texts, 4, (seed,), RESTARTS).model
        return np.concatenate([worths, model(pack.features).ravel()])


def _counted(seed: int, left_out: str) -> np.ndarray:
    """How good each number of clusters is."""
    pack, words = _pack(seed, noise=(0.05, 0.15, 0.3)[seed % 3])
    texts = Texts.of(pack.texts[:3], words.vectors, 20.0)
    with without(left_out):
        curve = take_census(pack.features, texts, np.random.default_rng(0)).curve
    assert curve is not None
    return curve.quality


@pytest.mark.parametrize("left_out", [what for what in INGREDIENTS if what != "nothing"])
def test_what_is_left_out_was_there(left_out):
    asked = _fitted if set(INGREDIENTS[left_out].arms) <= set(TOLD) else _counted
    for seed in range(12):
        whole, less = asked(seed, "nothing"), asked(seed, left_out)
        if whole.shape != less.shape or not np.allclose(whole, less, atol=1e-4):
            break
    else:
        pytest.fail("nothing changed on twelve streams")
    again = asked(seed, "nothing")
    assert np.array_equal(again, whole)  # and it is back


def test_the_change_is_that_on_the_tasks_that_both_have():
    def row(what: str, pack: str, accuracy: float, found: int) -> dict:
        place = {"left_out": what, "pack": pack, "known": 2, "novel": 4, "seed": 0}
        counted = {"arm": "counted", "found": found, "range": [1, 9]}
        return {**place, **counted, "accuracy": [accuracy, None, None]}

    whole = [row("nothing", "a", 80.0, 4), row("nothing", "b", 40.0, 4)]
    less = [row("nulls", "a", 77.5, 10), row("near", "a", 81.0, 1), row("near", "b", 43.0, 4)]
    lines = list(tables([*whole, *less]))
    assert "| nothing |  | 60.0, 1.00 |  |" in lines
    assert "| near |  | 62.0 (+2.0 ±1.0), 1.41 |  |" in lines  # 3 of 6 on one of two tasks
    assert "| nulls |  | 77.5 (-2.5), 2.00, 1 of 2 tasks |  |" in lines


def test_what_is_not_there_is_said(folder, capsys):
    for arguments, said in (
        ([str(folder), "--without", "salt"], "no such ingredient: salt; there are nothing, "),
        ([str(folder), "--only", "x*"], "no task matches --only x*"),
        (["--table", "--out", str(folder / "none.jsonl")], "has no row to show"),
        ([], "give a folder of packs, or --table"),
        ([str(folder), "--jobs", "0"], "--jobs must be at least 1, got 0"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err


def test_the_page_on_the_method_shows_what_was_measured(capsys):
    root = Path(__file__).parent.parent.parent
    assert main(["--table", "--out", str(root / "results" / "ablation.jsonl")]) == 0
    printed = capsys.readouterr().out.splitlines()
    page = (root / "docs" / "discovery.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- measured -->")[2].partition("<!-- end of measured -->")[0]
    assert [line for line in shown.splitlines() if line] == [line for line in printed if line]
