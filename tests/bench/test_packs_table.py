"""`python -m benchmarks.packs`: tasks drawn from packs, measured, printed, gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pack_tables import beside, summary, tables
from benchmarks.pack_tasks import TaskKey, draw, sizes, tasks_of
from benchmarks.packs import main
from ttgcd.bench.packs import Pack, Words, write_pack, write_words
from ttgcd.cli import main as ttgcd

NAMES = ("cat", "dog", "owl", "fox", "elk", "bat")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six classes of 30 rows about orthogonal axes; each text near its own class."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(6), 30))
    axes = np.eye(6, 16)
    features = axes[labels] + 0.05 * rng.normal(size=(180, 16))
    texts = axes + 0.1 * rng.normal(size=(6, 16))
    texts[5] = 0
    write_pack(tmp_path, Pack("animals", features, labels, texts, NAMES, "toy"))
    words = (*NAMES, "wildcat", "spoon", "teapot", "lamp")
    vectors = np.concatenate([axes, rng.normal(size=(4, 16))])
    write_words(tmp_path, "toy", Words(words, vectors))
    return tmp_path


def rows_in(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_task_is_known_classes_with_a_text_then_hidden_ones_and_words_that_tell_nothing(folder):
    task = TaskKey(folder, "animals", 2, 3)
    with np.load(folder / "animals.npz") as held:
        features, labels = held["v"], held["y"]
    chosen = set()
    for seed in range(6):
        drawn = draw(task, seed)
        assert drawn.known == 2 and drawn.novel == 3 and len(drawn.labels) == 150
        # Every row of the task is one of the pack, and a class of the task is one of the pack's.
        at = [int(np.abs(features - row).sum(axis=1).argmin()) for row in drawn.features]
        assert len(set(at)) == 150
        classes = [np.unique(labels[at][drawn.labels == k]).tolist() for k in range(5)]
        assert all(len(same) == 1 for same in classes)
        known, hidden = [c for (c,) in classes[:2]], [c for (c,) in classes[2:]]
        assert 5 not in known  # it has no text
        for place, k in enumerate(known):
            assert drawn.anchors[place] @ drawn.features[drawn.labels == place][0] > 0.7, k
        assert drawn.words is not None
        for k in hidden:
            assert not any(NAMES[k] in word for word in drawn.words.names)
        assert {"spoon", "lamp", "teapot"} <= set(drawn.words.names)
        assert {NAMES[k] for k in known} <= set(drawn.words.names)
        chosen.add(tuple(known))
    assert len(chosen) > 1


def test_a_pack_with_its_own_split_keeps_it_whatever_the_seed(folder, tmp_path):
    own = tmp_path / "own"
    with np.load(folder / "animals.npz") as held:
        pack = Pack("split", held["v"], held["y"], held["text"], NAMES, "toy", known=(3, 0))
    write_pack(own, pack)
    named, nameless = tasks_of([own])
    assert (named.known, named.novel) == (2, 4) and (nameless.known, nameless.novel) == (0, 6)
    first, second = draw(named, 0), draw(named, 1)
    assert np.allclose(first.anchors, second.anchors) and first.words is None
    assert first.anchors[0] @ pack.texts[3] / np.linalg.norm(pack.texts[3]) > 0.999
    assert not np.array_equal(first.labels, second.labels)
    assert sizes(pack) == [(2, 4), (0, 6)]


def test_rows_are_measured_once_printed_and_gone_on_with(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    few = ["--arms", "told+words,told,counted+words,counted,kmeans", "--seeds", "0"]
    assert main([str(folder), *few]) == 0
    path = folder / "packs.jsonl"
    rows = rows_in(path)
    tasks = {(row["known"], row["novel"]) for row in rows}
    assert tasks == {(2, 4), (1, 5), (0, 6)} and len(rows) == 15
    by = {(row["known"], row["arm"]): row for row in rows}
    # The classes are far apart: whoever is told how many there are finds them.
    assert by[2, "told"]["accuracy"] == [100, 100, 100]
    assert by[0, "kmeans"]["accuracy"] == [100, None, 100]
    assert by[2, "told+words"]["words"] > 0 and by[2, "told"]["words"] == 0
    low, high = by[2, "counted"]["range"]
    assert low <= by[2, "counted"]["found"] <= high
    said = capsys.readouterr().out
    assert "| animals: 2 + 4 | 180 | " in said and "No names" in said
    # A line that was cut short is measured again, all others stay as they are.
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:20])
    assert main([str(folder), *few]) == 0
    assert "1 to measure, 14 in" in capsys.readouterr().out
    again = rows_in(path)
    assert again[:-1] == rows[:-1] and again[-1]["accuracy"] == rows[-1]["accuracy"]
    assert main(["--table", "--only", "animals:2*", "--arms", "told"]) == 0
    assert "2 + 4" in (said := capsys.readouterr().out) and "1 + 5" not in said


def test_two_processes_measure_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder)
    few = [str(folder), "--arms", "told,kmeans", "--seeds", "0", "--only", "*:2+4"]
    assert main([*few, "--out", "one.jsonl"]) == 0
    assert main([*few, "--out", "two.jsonl", "--jobs", "2"]) == 0
    one, two = ([r["accuracy"] for r in rows_in(folder / f"{n}.jsonl")] for n in ("one", "two"))
    assert one == two and len(one) == 2


@pytest.mark.parametrize("arm, module", [("umap-hdbscan-5", "umap"), ("evoc", "evoc")])
def test_neighbours_answer_as_many_rows(folder, monkeypatch, arm, module):
    pytest.importorskip(module)
    monkeypatch.chdir(folder)
    assert main([str(folder), "--arms", arm, "--seeds", "0", "--only", "*:0+6"]) == 0
    (row,) = rows_in(folder / "packs.jsonl")
    assert row["accuracy"][0] > 60 and row["found"] >= 2


def test_a_pack_that_the_command_made_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("tree\nspoon\n")
    made = ["iconshift", "--streams", "line", "--limit", "150", "--vocabulary", "@words.txt"]
    assert ttgcd(["bench", "pack", *made, "--out", "packs"]) == 0
    assert main(["packs", "--arms", "counted+words,kmeans", "--seeds", "0"]) == 0
    assert {row["pack"] for row in rows_in(tmp_path / "packs.jsonl")} == {"iconshift-line"}
    assert "median relative error of L" in capsys.readouterr().out


def test_what_cannot_be_used_is_refused(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    for arguments, message in (
        ([], "give a folder"),
        (["nowhere"], "no such folder"),
        ([".", "--arms", "best"], "no such arm: best"),
        ([".", "--only", "birds*"], "no task matches"),
        ([".", "--jobs", "0"], "at least 1"),
        (["--table"], "no row to show"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2 and message in capsys.readouterr().err


def row(arm: str, all_: float, novel: int = 4, known: int = 4, seed: int = 0, **more) -> dict:
    task = {"pack": "animals", "known": known, "novel": novel, "seed": seed, "arm": arm}
    more = {"samples": 9, "cpu_seconds": 2.0, "found": novel, "range": [novel, novel], **more}
    return {**task, "accuracy": [all_, all_, all_], **more}


def test_the_summary_says_what_the_rows_say():
    rows = [
        row("told", 80),
        row("told", 90, seed=1),
        row("told+words", 88),
        row("counted+words", 81, found=5, range=[4, 6]),
        row("counted", 70),
        row("counted+words", 90, novel=0, found=3, range=[1, 4]),
        row("told+words", 91, novel=0),
        row("counted", 60, known=0, novel=10, found=12),
        row("kmeans", 62, known=0, novel=10),
        row("evoc", 65, known=0, novel=10),
    ]
    said = "\n".join(summary(rows))
    assert "L given, L > 0: with words 88.0 (1 tasks)" in said
    assert "without 85.0 (1 tasks)" in said
    assert "L unknown minus L given, L > 0, with words: -7.0 (1 tasks)" in said
    assert "L unknown minus L given, with those of L = 0, with words: -4.0 (2 tasks)" in said
    assert "what words change, L given: animals +3.0" in said
    assert "median relative error of L: 25 % of 1 runs" in said
    # (log 9/8 + log 7/4) / 2
    assert "of all categories: 0.339" in said
    assert "holds the truth on 50 % of 2 runs" in said
    assert "false categories at L = 0: median 3" in said
    assert "no names, L unknown: 60.0 (1 tasks)" in said and "k-means told K + L: 62.0" in said
    assert "worst -5.0 (animals: 10)" in said
    assert "| animals: 4 + 4 | 9 | 88.0 | 85.0 | 81.0 | 70.0 | 5 (4-6) |" in tables(rows)
    said = "\n".join(beside(rows, [row("told", 79), row("told+words", 90)], "earlier"))
    assert "L given: +1.0 (1 tasks)" in said  # only the seed that both have
    assert "L given, words: -2.0 (1 tasks), worst -2.0 (animals: 4 + 4)" in said


def test_tables_are_written_into_a_page_in_the_place_of_those_before(tmp_path, capsys):
    rows, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- measured -->\nold\n<!-- end of measured -->\n\nRest.\n")
    for value in (80, 90):
        rows.write_text(json.dumps(row("told", value)) + "\n")
        assert main(["--table", "--out", str(rows), "--page", str(page)]) == 0
    text = page.read_text()
    assert "| animals: 4 + 4 | 9 | 90.0 |" in text and "80.0" not in text and "old" not in text
    assert text.startswith("# Page\n") and text.endswith("measured -->\n\nRest.\n")
    page.write_text("# Page\n")
    with pytest.raises(SystemExit):
        main(["--table", "--out", str(rows), "--page", str(page)])
    assert "has no <!-- measured -->" in capsys.readouterr().err
    assert page.read_text() == "# Page\n"


def test_the_page_on_real_clip_shows_what_was_measured(capsys):
    root = Path(__file__).parent.parent.parent
    assert main(["--table", "--out", str(root / "results" / "packs.jsonl")]) == 0
    printed = capsys.readouterr().out.splitlines()
    page = (root / "docs" / "real-clip.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- measured -->")[2].partition("<!-- end of measured -->")[0]
    assert [line for line in shown.splitlines() if line] == [line for line in printed if line]
