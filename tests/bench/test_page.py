"""The page of all results."""

from __future__ import annotations

import json

import pytest

from tests.bench.conftest import make_row
from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.page import commands, write_page
from ttgcd.cli import main
from ttgcd.errors import InputError


def write(folder, name, rows):
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({**row, "experiment": name, "config": {}}) for row in rows]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def results(tmp_path):
    rows = [make_row(label, all_=a) for label, a in (("PACT", 61.25), ("TENT++", 44.5))]
    write(tmp_path / "results", "main", rows)
    return tmp_path / "results"


def test_the_page_holds_table_figure_command_and_finding(results, tmp_path, capsys):
    (results / "findings.md").write_text("## introduction\nHello.\n## main\nPACT leads here.\n")
    page = tmp_path / "docs.md"
    assert main(["bench", "page", "--results", str(results), "-o", str(page)]) == 0
    text = page.read_text()
    assert text.index("Hello.") < text.index("PACT leads here.") < text.index("**61.25**")
    assert "44.50" in text and "ttgcd bench run main --data DATA --benchmarks cifar10-c" in text
    assert (tmp_path / "img" / "main.png").stat().st_size > 1000 and "(img/main.png)" in text
    # What the paper measured and this page did not is folded away, without empty columns of ours.
    shown, folded = text.split('<details markdown="1"><summary>The paper')
    assert "**imagenet-c**" not in shown and "| PACT |  | **22.20** |" in folded


def test_the_verdict_on_the_optimiser_stands_below_its_rows(results, tmp_path):
    labels = [variant.label for variant in load_experiment("settle").variants]
    write(results, "settle", [make_row(label, all_=40.0) for label in labels])
    text = write_page(results, tmp_path / "docs.md").read_text()
    assert "raises All (paper: +5.91)" in text and "verdict: undecided" in text
    write(results, "settle", [make_row(label) for label in labels[1:]])
    text = write_page(results, tmp_path / "docs.md").read_text()
    assert "settle is not complete: no row of no re-alignment" in text


def test_rows_of_another_limit_have_their_own_table_and_figure(results, tmp_path):
    rows = [make_row("PACT"), make_row("PACT", limit=50, run_id="short", all_=12.5)]
    write(results, "main", rows)
    text = write_page(results, tmp_path / "docs.md").read_text()
    assert "(img/main.png)" in text and "(img/main1.png)" in text
    assert text.index("50.00") < text.index("ONLY 50 IMAGES") < text.index("12.50")


def test_commands_name_streams_seeds_and_methods_where_they_differ():
    rows = [
        make_row("PACT", seed=0, streams=2, stream="fog"),
        make_row("PACT", seed=0, streams=2, stream="snow"),
        make_row("PACT", seed=1, streams=2, stream="fog"),
        make_row("PACT", seed=1, streams=2, stream="snow"),
        make_row("TENT++", seed=0, streams=2, stream="fog"),
    ]
    told = commands(load_experiment("main"), rows, {})
    start = "ttgcd bench run main --data DATA --benchmarks cifar10-c"
    model = "--model openai/clip-vit-base-patch16"
    assert sorted(told) == [
        f'{start} {model} --seeds 0 --streams fog --methods "TENT++"',
        f'{start} {model} --seeds 0,1 --methods "PACT"',
    ]
    assert commands(load_experiment("main"), rows[:4], {}) == [f"{start} {model} --seeds 0,1"]


def test_no_results_and_a_finding_about_nothing_are_errors(results, tmp_path):
    with pytest.raises(InputError, match="no results"):
        write_page(tmp_path, tmp_path / "docs.md")
    (results / "findings.md").write_text("## mian\ntypo\n")
    with pytest.raises(InputError, match="'mian' is not an experiment"):
        write_page(results, tmp_path / "docs.md")
