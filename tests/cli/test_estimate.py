"""``ttgcd estimate`` and ``ttgcd discover`` find the same number, on all that both take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttgcd.cli import main
from ttgcd.datasets.iconshift import load_iconshift
from ttgcd.methods.scout import Scout
from ttgcd.prototypes.curve import Curve

SHOWN = ("heart", "car", "crown", "thermometer", "pig", "cake", "umbrella", "cat")
WORDS = "heart,automobile,crown,thermometer,pig,cake,house,tree,shoe"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 120 line drawings of eight classes."""
    folder = tmp_path_factory.mktemp("counted") / "photos"
    folder.mkdir()
    source, labels = load_iconshift("line")
    for place, label in enumerate(labels):
        if label in SHOWN:
            (folder / f"{place:05d}.png").write_bytes(bytes(source.read(place)))  # type: ignore[arg-type]
    assert 100 <= len(list(folder.iterdir())) <= 140
    return folder


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four known and four novel classes, with the texts of the known ones and of words."""
    folder, rng = tmp_path_factory.mktemp("embedded"), np.random.default_rng(1)
    centres = np.linalg.qr(rng.normal(size=(32, 32)))[0][:8]
    rows = centres.repeat(30, axis=0) + 0.17 * rng.normal(size=(240, 32))
    texts = np.concatenate([centres, rng.normal(size=(40, 32))]) + 0.1 * rng.normal(size=(48, 32))
    for name, array in (("rows", rows), ("anchors", texts[:4]), ("words", texts)):
        np.save(folder / f"{name}.npy", array.astype(np.float32))
    return folder


def estimated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()  # what was printed before
    assert main(["estimate", *arguments, "--json", "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return json.loads(said.out)


def discovered(out: Path, *arguments: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """run.json and categories.json."""
    assert main(["discover", *arguments, "--out", str(out), "--overwrite", "--quiet"]) == 0
    read = ((out / name).read_text() for name in ("run.json", "categories.json"))
    record, categories = map(json.loads, read)
    return record, categories


def assert_same(count: dict[str, Any], run: tuple[dict[str, Any], dict[str, Any]]) -> None:
    record, categories = run
    health = record["health"]
    assert count["by"] == "discover"
    assert count["novel"] == health["novel"]
    assert count["range"] == health["novel_range"]
    assert count["judged"] == health["count_judged"]
    assert count["curve"] == record["count_curve"] and len(count["curve"]) > 3
    assert count["hills"] == categories["levels"]["hills"]
    assert (count["samples"], count["rejected"]) == (record["samples"], record["rejected"])
    assert count["clusters"] == count["known"] + count["novel"]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--known", "heart,car,crown"),
        ("--known", "heart,car", "--seed", "3", "--vocabulary", f"{WORDS}"),
        ("--known", "heart,car", "--in-order", "--template", "a drawing of a {}."),
        ("--vocabulary", "none", "--batch-size", "50"),
    ],
)
def test_images_are_counted_as_discover_does(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    given = (str(photos), "--model", "mini", *options)
    count = estimated(capsys, *given)
    assert_same(count, discovered(tmp_path / "out", *given))
    assert count["known"] == (len(options[1].split(",")) if "--known" in options else 0)
    assert count["novel"] >= 2


@pytest.mark.parametrize("words", [(), ("--word-embeddings", "words.npy")])
def test_embeddings_are_counted_as_discover_does(
    embeddings: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(embeddings)
    known = ("--known", "ant,bee,cat,dog", "--anchors", "anchors.npy", "--logit-scale", "50")
    count = estimated(capsys, "rows.npy", *known, *words)
    assert_same(count, discovered(tmp_path / "named", "rows.npy", *known, *words))
    assert 3 <= count["novel"] <= 5
    nameless = estimated(capsys, "rows.npy", *words)
    assert_same(nameless, discovered(tmp_path / "nameless", "rows.npy", *words))
    assert nameless["known"] == 0 and 7 <= nameless["novel"] <= 9


def test_what_cannot_be_read_is_counted_apart_and_nothing_is_left_behind(
    photos: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    for place in sorted(photos.iterdir())[:60]:
        (folder / place.name).write_bytes(place.read_bytes())
    (folder / "broken.png").write_bytes(b"no image")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    count = estimated(capsys, "some", "--model", "mini")
    assert (count["samples"], count["rejected"]) == (60, 1)
    assert main(["estimate", "some", "--model", "mini"]) == 0
    said = capsys.readouterr()
    assert "in 60 samples (1 could not be read)." in said.out
    assert "no known class: everything is grouped" in said.err and "stream: 61/61" in said.err
    assert sorted(tmp_path.rglob("*")) == before
    assert_same(count, discovered(tmp_path / "out", "some", "--model", "mini"))


def test_people_are_told_the_number_and_its_range(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (str(photos), "--model", "mini", "--known", "heart,car,crown")
    count = estimated(capsys, *given)
    assert main(["estimate", *given, "--quiet"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert f"{count['novel']} novel categories beside 3 known classes" in first
    low, high = count["range"]
    assert (f"between {low} and {high}," in first) == (low < high)
    assert first.startswith("A guess") != count["judged"]
    assert any(line.startswith("note: model 'mini'") for line in rest)


def test_a_count_that_is_not_to_be_believed_says_so(
    embeddings: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Names that have nothing to do with the samples cannot bear out which groups are novel."""
    width = np.load(embeddings / "anchors.npy").shape[1]
    turned = np.random.default_rng(5).normal(size=(4, width)).astype(np.float32)
    np.save(tmp_path / "other.npy", turned)
    given = (str(embeddings / "rows.npy"), "--known", "a,b,c,d")
    given += ("--anchors", str(tmp_path / "other.npy"))
    assert estimated(capsys, *given)["judged"] is False
    assert main(["estimate", *given, "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("A guess, not to be believed: ")
    assert "note: the known names fit this stream too little" in out


def test_two_hills_are_both_told(
    embeddings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = np.unique(np.round(2 * 1.15 ** np.arange(30)))
    heights = sum(np.exp(-((np.log(k / hill) / 0.3) ** 2)) for hill in (6, 27))
    monkeypatch.setattr(Scout, "count_curve", lambda self: Curve(k, heights))
    low, high = estimated(capsys, str(embeddings / "rows.npy"))["hills"]
    assert 5 <= low <= 7 and 24 <= high <= 31
    assert main(["estimate", str(embeddings / "rows.npy"), "--quiet"]) == 0
    assert f"About {low} and {high} groups describe them equally well" in capsys.readouterr().out


def test_the_plot_draws_the_curve(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "curve.svg"
    given = (str(photos), "--model", "mini", "--known", "heart,car")
    count = estimated(capsys, *given, "--plot", str(place))
    drawn = place.read_text()
    low, high = count["range"]
    for words in (f"range ({low} to {high})", f"{count['novel']} novel", "known classes (2)"):
        assert words in drawn
    assert ("<!-- hills -->" in drawn) == bool(count["hills"])
    assert main(["estimate", *given, "--quiet", "--plot", str(tmp_path / "no" / "x.png")]) == 2
    said = capsys.readouterr()
    assert "cannot write the plot" in said.err
    assert f"{count['novel']} novel categories" in said.out  # what was counted is not lost


def test_too_few_samples_have_no_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "rows.npy", np.eye(3, 8, dtype=np.float32))
    plot = str(tmp_path / "x.png")
    assert main(["estimate", str(tmp_path / "rows.npy"), "--plot", plot, "--quiet"]) == 2
    said = capsys.readouterr()
    assert "too few for a curve" in said.err and "in 3 samples" in said.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--from", "stream"), "--from stream is an option of the paper's estimate"),
        (("--warmup", "64"), "--warmup 64 is an option of the paper's estimate"),
        (("--method", "grid"), "add --by silhouette"),
        (("--kmeans", "plain"), "add --by silhouette"),
        (("--max-clusters", "9"), "--max-clusters 9 is an option"),
        (("--by", "silhouette", "--anchors", "x.npy"), "--anchors has no use with --by silhouette"),
        (("--by", "silhouette", "--vocabulary", "none"), "--vocabulary has no use"),
        (("--known", "a,b"), "give the text embeddings of the known names as --anchors"),
        (("--batch-size", "0"), "batch_size must be 1 or more"),
    ],
)
def test_options_without_effect_and_mistakes_are_refused(
    embeddings: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], says: str
) -> None:
    assert main(["estimate", str(embeddings / "rows.npy"), *options]) == 2
    assert says in capsys.readouterr().err


def test_where_nothing_can_be_read_there_is_no_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    assert main(["estimate", str(tmp_path), "--model", "mini"]) == 2
    assert "no readable image among 1" in capsys.readouterr().err
    # Files that go away after the first look.
    monkeypatch.setattr("ttgcd.streams.open.require_readable", lambda *_: None)
    assert main(["estimate", str(tmp_path), "--model", "mini"]) == 2
    assert "no readable sample in the input" in capsys.readouterr().err


def test_threads_and_precision_are_obeyed(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    before = torch.get_num_threads()
    given = (str(photos), "--model", "mini", "--precision", "int8", "--threads", "1")
    try:
        count = estimated(capsys, *given)
        assert torch.get_num_threads() == 1
        assert_same(count, discovered(tmp_path / "out", *given))
        assert count["curve"] != estimated(capsys, str(photos), "--model", "mini")["curve"]
    finally:
        torch.set_num_threads(before)
