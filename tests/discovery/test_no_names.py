"""Nothing has a name: the command, Python, every kind of source, and names that come later."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import ttgcd
from tests.report.runs import Page
from ttgcd.cli import main
from ttgcd.datasets.iconshift import load_iconshift
from ttgcd.errors import InputError

SHOWN = ("heart", "car", "crown", "thermometer", "pig", "cake")
QUICK = {"restarts": 2, "fresh_restarts": 1}
WORDS = "heart,automobile,crown,thermometer,pig,cake,house,tree,shoe"


@pytest.fixture(scope="module")
def drawings() -> list[tuple[str, bytes, str]]:
    """File name, PNG bytes and class of line drawings of six classes, mixed."""
    source, labels = load_iconshift("line")
    found = []
    for place, label in enumerate(labels):
        if label in SHOWN:
            found.append((f"{place:05d}.png", bytes(source.read(place)), label))  # type: ignore[arg-type]
    order = np.random.default_rng(0).permutation(len(found))
    return [found[place] for place in order]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory, drawings: list) -> Path:
    folder = tmp_path_factory.mktemp("nameless") / "photos"
    folder.mkdir()
    for name, data, _ in drawings:
        (folder / name).write_bytes(data)
    rows = "".join(f"{name},{label}\n" for name, _, label in drawings)
    (folder.parent / "labels.csv").write_text("id,label\n" + rows)
    return folder


@pytest.fixture(scope="module")
def run(photos: Path) -> Path:
    """What the command leaves, told that there are six groups."""
    out = photos.parent / "found"
    command = ["discover", str(photos), "--novel", "6", "--model", "mini", "--out", str(out)]
    labels = str(photos.parent / "labels.csv")
    assert main([*command, "--vocabulary", WORDS, "--labels", labels, "--quiet"]) == 0
    return out


def categories(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "categories.json").read_text())["categories"]


def of_class(out: Path, labels: dict[str, str], category: int) -> Counter[str]:
    rows = pq.read_table(out / "assignments.parquet").to_pylist()
    return Counter(labels[row["id"]] for row in rows if row["category"] == category)


# -- a run ----------------------------------------------------------------------------------------


def test_the_command_groups_and_suggests_names(run: Path) -> None:
    found = categories(run)
    assert [c["name"] for c in found] == [f"group {n}" for n in range(1, 7)]
    assert {c["kind"] for c in found} == {"novel"}
    suggested = {word for c in found for word in c["suggested_names"][:1]}
    assert len(suggested & set(WORDS.split(","))) >= 4
    table = pq.read_table(run / "assignments.parquet")
    assert "confidence" not in table.column_names  # of what should an answer be sure?
    record = json.loads((run / "run.json").read_text())
    assert record["scores"]["all"] > 70 and record["scores"]["known"] is None
    assert record["health"]["names_reliability"] is None


def test_what_the_command_says_is_about_groups(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", "mini", "--vocabulary", "none", "--out", str(tmp_path / "found")]
    assert main(["discover", str(photos), *options]) == 0
    said = capsys.readouterr()
    assert "no known class: everything is grouped" in said.err
    count = sum(c["count"] > 0 for c in categories(tmp_path / "found"))
    total = len(list(photos.iterdir()))
    assert f"{total} samples in {count} groups" in said.out
    assert re.search(r"  group \d+ +\d+", said.out)
    assert "known class" not in said.out
    assert f"{count} groups" in repr(ttgcd.load(tmp_path / "found"))


def test_the_report_speaks_of_groups(run: Path) -> None:
    page = Page.of(run)
    total = sum(c["count"] for c in categories(run))
    assert page.words("title") == "photos: 6 groups - ttgcd"
    assert page.data["groups"] is True and page.data["calibrated"] is False
    text = re.sub(r"<(script|style).*?</\1>", "", (run / "report.html").read_text(), flags=re.S)
    shown = " ".join(re.sub(r"<pre>.*?</pre>|<[^>]+>", " ", text, flags=re.S).split())
    assert (
        f"{total} images in 6 groups" in shown and "Groups" in shown and "How many groups?" in shown
    )
    for word in ("novel", "new categor", "New categor", "you named"):
        assert word not in shown, word
    assert max(page.data["rows"]["doubt"]) > min(page.data["rows"]["doubt"])


def test_the_papers_estimate_does_without_names(
    photos: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plot = tmp_path / "trace.png"
    given = ["estimate", str(photos), "--model", "mini", "--by", "silhouette", "--quiet"]
    assert main([*given, "--plot", str(plot)]) == 0
    assert re.match(r"\d+ groups have the best silhouette", capsys.readouterr().out)
    assert plot.exists()
    assert main([*given, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["known"] == 0 and said["novel"] == said["clusters"] >= 2


def test_an_interrupted_run_goes_on(photos: Path, run: Path, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(phase: str, done: int, total: int) -> None:
        if done >= 48:
            raise Stop

    given: dict[str, Any] = {"novel": 6, "model": "mini", "changes": {"warmup": 32, **QUICK}}
    given |= {"batch_size": 16, "vocabulary": WORDS}
    whole = ttgcd.discover(photos, out=tmp_path / "whole", **given)
    with pytest.raises(Stop):
        ttgcd.discover(photos, out=tmp_path / "cut", progress=stop, **given)
    again = ttgcd.discover(photos, out=tmp_path / "cut", resume=True, **given)
    assert again.to_arrow().equals(whole.to_arrow())


# -- names that come later ------------------------------------------------------------------------


def test_a_group_that_got_a_name_is_known_to_a_run_that_goes_on(
    run: Path, photos: Path, drawings: list, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = {name: label for name, _, label in drawings}
    first = ttgcd.load(run).save(tmp_path / "first")
    assert first.out is not None
    hearts = max(range(6), key=lambda c: of_class(run, labels, c)["heart"])
    assert main(["edit", str(first.out), "rename", str(hearts), "heart"]) == 0
    more = tmp_path / "more"
    more.mkdir()
    for name, data, _ in drawings[:60]:
        (more / f"again {name}").write_bytes(data)
    capsys.readouterr()
    command = ["discover", str(more), "--from", str(first.out), "--out", str(tmp_path / "second")]
    assert main([*command, "--quiet"]) == 0
    assert re.search(r"60 samples: \d+ in 1 known class, \d+ in \d groups", capsys.readouterr().out)
    by_id = {c["id"]: c for c in categories(tmp_path / "second")}
    assert (by_id[hearts]["kind"], by_id[hearts]["name"]) == ("known", "heart")
    assert {c["name"] for c in by_id.values() if c["kind"] == "novel"} <= {
        f"group {n}" for n in range(1, 20)
    }
    table = pq.read_table(tmp_path / "second" / "assignments.parquet")
    assert min(table.column("confidence").to_pylist()) >= 0  # now there is a name to be right about
    rows = [row for row in table.to_pylist() if row["category"] == hearts]
    right = [labels[row["id"].removeprefix("again ")] == "heart" for row in rows]
    assert len(right) >= 3 and np.mean(right) > 0.8
    assert Page.of(tmp_path / "second").words("h1").startswith("60 images: ")
    # Once more, and further images only assigned: the name stays.
    third = ttgcd.load(tmp_path / "second").update(more, out=tmp_path / "third")
    assert {c.id: c.kind for c in third.categories}[hearts] == "known"
    told = third.predict(more).to_pylist()
    assert {row["name"] for row in told if row["category"] == hearts} == {"heart"}


def test_marking_says_that_nothing_is_known(run: Path) -> None:
    with pytest.raises(InputError, match="this run knows none; give a group its name with rename"):
        ttgcd.load(run).mark(0, "heart")


# -- sources --------------------------------------------------------------------------------------


def rows_of(count: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of four groups, and the group of each."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, count)
    return (np.eye(4, 12)[truth] + 0.1 * rng.normal(size=(count, 12))).astype(np.float32), truth


def groups_of(found: ttgcd.Discovery) -> int:
    assert all(re.fullmatch(r"group \d+", c.name) for c in found.categories)
    return sum(c.count > 0 for c in found.categories)


def test_embeddings_are_grouped_without_any_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, truth = rows_of()
    np.save(tmp_path / "rows.npy", rows)
    out = tmp_path / "found"
    assert main(["discover", str(tmp_path / "rows.npy"), "--out", str(out), "--quiet"]) == 0
    found = ttgcd.load(out)
    assert groups_of(found) == 4
    given = {int(r["id"]): r["category"] for r in found.assignments()}
    pairs = {(given[i], int(label)) for i, label in enumerate(truth)}
    assert len(pairs) == 4
    # No model reads the name: the group is known by its members.
    found.rename(given[0], "first")
    later = found.update(rows[:50] + 0.01, out=tmp_path / "later")
    assert {c.name: c.kind for c in later.categories}["first"] == "known"
    words = np.eye(4, 12)
    np.save(tmp_path / "words.npy", words)
    command = ["discover", str(tmp_path / "rows.npy"), "--out", str(tmp_path / "named"), "--quiet"]
    texts = ["--vocabulary", "a,b,c,d", "--word-embeddings", str(tmp_path / "words.npy")]
    assert main([*command, *texts]) == 0
    suggested = [c["suggested_names"][0] for c in categories(tmp_path / "named")]
    assert sorted(suggested) == list("abcd")


def test_texts_of_names_without_the_names_are_refused() -> None:
    rows, _ = rows_of()
    with pytest.raises(InputError, match="anchors have 2 rows but 0 classes are named"):
        ttgcd.discover(rows, anchors=np.eye(2, 12))


def test_every_kind_of_source_of_images_is_grouped(drawings: list, tmp_path: Path) -> None:
    some = drawings[:40]
    pictures = [Image.open(io.BytesIO(data)).convert("RGB").resize((64, 64)) for _, data, _ in some]
    array = np.stack([np.asarray(picture) for picture in pictures])
    np.save(tmp_path / "images.npy", array)
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        for name, data, _ in some:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    table = {"id": [name for name, _, _ in some], "image": [data for _, data, _ in some]}
    pq.write_table(pa.table(table), tmp_path / "shard.parquet")
    for name, data, _ in some:
        (tmp_path / name).write_bytes(data)
    listed = [str(tmp_path / name) for name, _, _ in some]
    (tmp_path / "list.txt").write_text("\n".join(listed))
    names = ("images.npy", "shard.tar", "shard.parquet", "list.txt")
    sources: list[Any] = [str(tmp_path / name) for name in names]
    sources += [listed, pictures, array, iter(pictures)]
    given = {"model": "mini", "vocabulary": "none", "changes": {**QUICK, "words": 0}}
    for source in sources:
        found = ttgcd.discover(source, novel=3, **given)
        assert (found.samples, groups_of(found)) == (40, 3), source


def test_a_hugging_face_data_set_is_grouped(drawings: list) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra that reads Hugging Face data sets")
    pictures = [Image.open(io.BytesIO(data)).convert("RGB") for _, data, _ in drawings[:40]]
    features = datasets.Features({"image": datasets.Image()})
    data = datasets.Dataset.from_dict({"image": pictures}, features=features)
    for source in (data, data.to_iterable_dataset()):
        found = ttgcd.discover(source, novel=3, model="mini", vocabulary="none", changes=QUICK)
        assert (found.samples, groups_of(found)) == (40, 3)


# -- Python ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [None, [], ()])
def test_no_names_in_python_are_none_or_an_empty_list(known: Any) -> None:
    rows, _ = rows_of()
    assert groups_of(ttgcd.discover(rows, known=known)) == 4


@pytest.mark.parametrize("method", ["kmeans", "hdbscan"])
def test_methods_that_only_cluster_do_without_names(method: str) -> None:
    rows, _ = rows_of()
    assert groups_of(ttgcd.discover(rows, method=method, novel=4)) == 4


def test_the_estimator_groups_without_anchors() -> None:
    rows, truth = rows_of()
    estimator = ttgcd.CategoryDiscovery().fit(rows)
    pairs = set(zip(estimator.labels_.tolist(), truth.tolist()))
    assert len(pairs) == 4 and [c.name for c in estimator.categories_] == [
        f"group {n}" for n in range(1, 5)
    ]
    assert estimator.predict(rows).tolist() == estimator.labels_.tolist()
    early = ttgcd.CategoryDiscovery(options={"warmup": 128}).partial_fit(rows[:50])
    assert set(early.labels_.tolist()) == {0} and early.categories_[0].name == "group 1"
    with pytest.raises(InputError, match="needs known names"):
        ttgcd.CategoryDiscovery(preset="paper").fit(rows)


def test_too_many_groups_are_refused_as_groups() -> None:
    rows, _ = rows_of(40)
    with pytest.raises(InputError, match="40 groups among 40 samples"):
        ttgcd.discover(rows, novel=40)


# -- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--preset", "paper"],
            "'paper' needs known names: give them as --known cat,dog, or take --method scout",
        ),
        (["--method", "zero-shot"], "'zero-shot' needs known names"),
        (["--novel", "0"], "there is nothing to sort into"),
        (["--abstain", "0.5"], "nothing has a name yet"),
        (["--known", ""], "no class name in the known names"),
    ],
)
def test_what_cannot_be_without_names_is_said_before_anything_is_read(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert main(["discover", nowhere, "--model", nowhere, "--out", nowhere, *options]) == 2
    assert said in capsys.readouterr().err
    assert not Path(nowhere).exists()
