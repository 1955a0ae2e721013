"""The README: its example runs, its links lead somewhere, its figures are the measured ones."""

from __future__ import annotations

import doctest
import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from benchmarks.pack_tables import Rows

README = Path(__file__).parent.parent / "README.md"
ROOT = README.parent
#: rows of the table, and the method of results/iconshift.jsonl that each shows
ROWS = {
    "zero-shot CLIP": "zero-shot",
    "k-means": "k-means",
    "HDBSCAN": "HDBSCAN",
    "PACT, the paper's method": "PACT",
    "Scout": "Scout",
    "Scout, revised at the end": "Scout (revised at the end)",
}


def measured() -> dict[str, list[float]]:
    """All, Known, Novel and right names by method: mean over seeds and streams."""
    sums: dict[str, list[list[float]]] = defaultdict(list)
    for line in (ROOT / "results" / "iconshift.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["model"] == "mini" and row["limit"] is None:
            keys = ("all", "known", "novel", "named_known_accuracy")
            sums[row["label"]].append([row["metrics"][key] for key in keys])
    return {label: [sum(c) / len(c) for c in zip(*rows)] for label, rows in sums.items()}


def test_the_example_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 4 and result.failed == 0
    assert (tmp_path / "found" / "report.html").is_file()


def test_every_document_it_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    named = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    named += re.findall(r"/main/(docs/[\w./-]+)\)", text)
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]


def test_its_figures_are_the_measured_ones() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\S+) \|", 
                      README.read_text(encoding="utf-8"), re.MULTILINE)  # fmt: skip
    assert len(rows) >= 4
    results = measured()
    for name, *figures in rows:
        label = ROWS[name.replace("*", "")]
        for shown, value in zip(figures, results[label]):
            assert shown == "—" or float(shown) == round(value, 1), name


def test_its_figures_on_real_clip_are_the_measured_ones() -> None:
    lines = (ROOT / "results" / "packs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = Rows(map(json.loads, lines))
    named, nameless = rows.tasks(True), rows.tasks(False)
    usual = [rows.every([t], rows.usual(t, a))[0] for a in ("told", "counted") for t in named]
    expected = {
        "k-means, told the number of all classes": [
            *[fmean(rows.every(named, "kmeans"))] * 2,
            fmean(rows.every(nameless, "kmeans")),
        ],
        "UMAP + HDBSCAN": [fmean(rows.every(nameless, "umap-hdbscan-5"))],
        "EVoC": [fmean(rows.every(nameless, "evoc"))],
        "**Scout**, no vocabulary": [
            fmean(rows.every(named, "told")),
            fmean(rows.every(named, "counted")),
            fmean(rows.every(nameless, "counted")),
        ],
        "**Scout**, a vocabulary where there is one": [
            fmean(usual[: len(named)]),
            fmean(usual[len(named) :]),
        ],
        "tasks": [len(named), len(named), len(nameless)],
    }
    text = README.read_text(encoding="utf-8")
    for name, figures in expected.items():
        (row,) = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.MULTILINE)
        shown = [float(cell) for cell in row.split("|") if cell.strip()]
        assert shown == [round(figure, 1) for figure in figures], name


def test_it_fits_on_one_screen_before_the_details() -> None:
    head = README.read_text(encoding="utf-8").split("## Set-up")[0]
    assert len(head.splitlines()) < 25
