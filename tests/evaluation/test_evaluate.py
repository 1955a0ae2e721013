"""``ttgcd evaluate``: a run's files against a file of labels."""

from __future__ import annotations

import argparse
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ttgcd.cli import evaluate
from ttgcd.errors import InputError


def write_run(folder, rows, order=("cat", "dog")):
    """A run's assignments; ``rows`` are (id, name of a known class or number of a novel one)."""
    table = {"id": [], "category": [], "kind": [], "name": [], "margin": []}
    for sample, answer in rows:
        known = isinstance(answer, str)
        table["id"].append(sample)
        table["category"].append(order.index(answer) if known else len(order) + answer)
        table["kind"].append("known" if known else "novel")
        table["name"].append(answer if known else f"novel {answer}")
        table["margin"].append(0.9 if known else 0.1)
    pq.write_table(pa.table(table), folder / "assignments.parquet")
    names = [{"id": k, "kind": "known", "name": name} for k, name in enumerate(order)]
    (folder / "categories.json").write_text(json.dumps(names))
    return folder / "assignments.parquet"


ROWS = [("a", "cat"), ("b", "cat"), ("c", "dog"), ("d", 0), ("e", 0), ("f", 1)]
LABELS = "id,label\na,cat\nb,dog\nc,dog\nd,fox\ne,fox\nf,owl\n"


def call(*argv):
    parser = argparse.ArgumentParser()
    evaluate.add_arguments(parser)
    return evaluate.run(parser.parse_args([str(part) for part in argv]))


@pytest.fixture
def run(tmp_path):
    write_run(tmp_path, ROWS)
    (tmp_path / "labels.csv").write_text(LABELS)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    return tmp_path


def scored(capsys, *argv):
    assert call(*argv, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_json_is_in_percent_with_the_extras_beside(run, capsys):
    known = f"@{run / 'names.txt'}"
    result = scored(capsys, run / "assignments.parquet", run / "labels.csv", "--known", known)
    assert result["all"] == pytest.approx(100 * 5 / 6)
    assert result["known"] == pytest.approx(100 * 2 / 3)
    assert result["novel"] == 100.0
    assert result["named_known_accuracy"] == pytest.approx(100 * 2 / 3)
    assert result["novelty_f1"] == result["novelty_auroc"] == 100.0
    assert (result["samples"], result["known_classes"], result["novel_classes"]) == (6, 2, 2)


def test_a_run_folder_remembers_its_known_classes(run, capsys):
    assert scored(capsys, run, run / "labels.csv")["novel"] == 100.0


def test_names_in_another_order_give_the_same_figures(run, capsys):
    one = scored(capsys, run, run / "labels.csv", "--known", "cat,dog")
    other = scored(capsys, run, run / "labels.csv", "--known", "dog,cat")
    assert one == other


def test_missing_counterparts_are_counted(run, capsys):
    (run / "labels.csv").write_text("id,label\na,cat\nd,fox\nz,fox\n")
    assert call(run, run / "labels.csv") == 0
    assert "4 samples without a label, 1 labels without a sample" in capsys.readouterr().out
    result = scored(capsys, run, run / "labels.csv")
    assert (result["samples"], result["unlabelled"], result["unassigned"]) == (2, 4, 1)
    with pytest.raises(InputError, match="4 samples have no label"):
        call(run, run / "labels.csv", "--strict")


def test_no_novel_label_is_null_and_not_zero(run, capsys):
    (run / "labels.csv").write_text("id,label\na,cat\nb,cat\n")
    result = scored(capsys, run, run / "labels.csv")
    assert result["novel"] is None and result["known"] == 100.0
    call(run, run / "labels.csv")
    assert "Novel   n/a" in capsys.readouterr().out


def test_a_label_that_looks_like_a_known_name_is_pointed_out(run, capsys):
    (run / "labels.csv").write_text(LABELS.replace("a,cat", "a,Cat"))
    call(run, run / "labels.csv")
    assert "'Cat' is counted as novel though 'cat' is known" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "known", "says"),
    [
        ("name,label\na,cat\n", "cat,dog", "columns 'id' and 'label'"),
        ("", "cat,dog", "columns 'id' and 'label'"),
        ("id,label\n", "cat,dog", "no row below the header"),
        ("id,label\na,\n", "cat,dog", "line 2: the label is empty"),
        ("id,label\na,cat\na,dog\n", "cat,dog", "id 'a' is already on line 2"),
        ("id,label\nx/a.png,cat\n", "cat,dog", "ids like 'x/a.png', the run has ids like 'a'"),
        (LABELS, "cat,cat", "more than once"),
        (LABELS, "cat", "knows a class 'dog' that is not among the names given"),
        (LABELS, "@nowhere.txt", "no such names file"),
        (LABELS, " , ", "is empty"),
    ],
)
def test_mistakes_are_named(run, labels, known, says):
    (run / "labels.csv").write_text(labels)
    with pytest.raises(InputError, match=says):
        call(run, run / "labels.csv", "--known", known)


def test_unusable_assignments_are_named(run, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        call(tmp_path / "nowhere", run / "labels.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no assignments\.parquet"):
        call(tmp_path / "empty", run / "labels.csv")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 cut short")
    with pytest.raises(InputError, match="not a readable parquet"):
        call(broken, run / "labels.csv", "--known", "cat")
    pq.write_table(pa.table({"id": ["a"]}), broken)
    with pytest.raises(InputError, match="column 'category' is missing"):
        call(broken, run / "labels.csv", "--known", "cat")
    pq.write_table(pa.table({"id": ["a", "a"], "category": [0, 1]}), broken)
    with pytest.raises(InputError, match="'a' occurs twice"):
        call(broken, run / "labels.csv", "--known", "cat")
    pq.write_table(pa.table({"id": ["a"], "category": [0]}), broken)
    with pytest.raises(InputError, match="which classes are known"):
        call(broken, run / "labels.csv")


def test_a_constant_score_is_no_score(run, tmp_path, capsys):
    plain = tmp_path / "plain.parquet"
    columns = {"id": ["a", "d"], "category": [0, 7], "novelty": [0.0, 0.0], "margin": [0.8, 0.3]}
    pq.write_table(pa.table(columns), plain)
    result = scored(capsys, plain, run / "labels.csv", "--known", "cat,dog")
    assert result["novelty_auroc"] == 100.0  # from the margin


def test_a_file_of_ids_and_categories_is_enough(run, tmp_path, capsys):
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": ["a", "d"], "category": [0, 7]}), plain)
    result = scored(capsys, plain, run / "labels.csv", "--known", "cat,dog")
    assert result["all"] == 100.0 and result["novelty_auroc"] is None
