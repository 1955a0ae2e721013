"""The product in Python: every kind of source, every method, and what comes after a run."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import ttgcd
from tests.methods.test_pact import unit, world
from ttgcd.cli import main
from ttgcd.methods.registry import METHODS
from ttgcd.streams.arrays import ArraySource, Rows

QUICK = {"warmup": 64, "epochs": 1}


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    from ttgcd.datasets.iconshift import load_iconshift
    from ttgcd.streams.decode import decode

    source, _ = load_iconshift("handdrawn")
    return np.stack([decode(source.read(position)) for position in range(96)])


def found_in(source, **options):
    given = {
        "shuffle": False,
        "known": ["umbrella", "dog"],
        "novel": 3,
        "model": "mini",
        "preset": "paper",
    }
    return ttgcd.discover(source, **{**given, "changes": QUICK, "batch_size": 32, **options})


@pytest.fixture(scope="module")
def expected(pictures) -> list[int]:
    return found_in(pictures).to_arrow().column("category").to_pylist()


class TorchDataset(torch.utils.data.Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]).permute(2, 0, 1), 7


def test_the_names_are_there() -> None:
    assert {"discover", "load", "CategoryDiscovery", "Category"} <= set(dir(ttgcd))


def test_pil_images_arrays_and_generators_give_what_an_array_gives(pictures, expected) -> None:
    as_pil = [Image.fromarray(picture) for picture in pictures]
    for source in (as_pil, list(pictures), (image for image in as_pil), TorchDataset(pictures)):
        assert found_in(source).to_arrow().column("category").to_pylist() == expected


def test_hugging_face_data_sets_give_the_same_streaming_or_not(pictures, expected) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra that reads Hugging Face data sets")
    records = {"image": [Image.fromarray(picture) for picture in pictures]}
    data = datasets.Dataset.from_dict(
        records, features=datasets.Features({"image": datasets.Image()})
    )
    assert found_in(data).to_arrow().column("category").to_pylist() == expected
    streaming = data.to_iterable_dataset()
    assert found_in(streaming).to_arrow().column("category").to_pylist() == expected


def test_what_is_no_image_is_set_aside_with_the_reason(pictures, tmp_path) -> None:
    objects = [*pictures[:40], "nowhere.jpg", 5, np.zeros((3, 4, 5, 6)), *pictures[40:]]
    found = found_in(objects, out=tmp_path / "out")
    assert (found.samples, found.rejected) == (96, 3)
    reasons = (tmp_path / "out" / "rejected.csv").read_text()
    assert (
        "file not found" in reasons and "int is no image" in reasons and "(3, 4, 5, 6)" in reasons
    )


class Counting(ArraySource):
    """Counts how often a sample is read for the stream."""

    reads = 0

    def read_many(self, positions):
        Counting.reads += len(positions)
        return super().read_many(positions)


@pytest.mark.parametrize("novel", [3, "auto"])
def test_each_image_is_read_once_for_the_stream(pictures, novel, monkeypatch) -> None:
    """Also when the number of novel categories is estimated on the way."""
    monkeypatch.setattr("ttgcd.discovery.outcome.write_report", lambda *args, **options: None)
    Counting.reads = 0
    found_in(Counting(Rows(pictures)), novel=novel)
    assert Counting.reads == len(pictures) + 1  # one more to see that there is an image at all


@pytest.mark.parametrize("source", [[], iter([]), {"a": 1}, 5, {1, 2}])
def test_a_source_that_is_none_says_so(source) -> None:
    with pytest.raises(ttgcd.InputError, match=r"empty|order|no source|several sources"):
        found_in(source)


def test_without_out_nothing_is_left_behind(pictures, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = found_in(pictures)
    assert found.out is None and os.listdir(tmp_path) == []
    assert found.report().read_text("utf-8").startswith("<!DOCTYPE html>")
    assert len(found.to_pandas()) == len(found.assignments()) == 96
    kept = found.save(tmp_path / "kept")
    assert kept.to_arrow().equals(found.to_arrow())
    with pytest.raises(ttgcd.InputError, match="exists"):
        found.save(tmp_path / "kept")


def test_categories_are_typed_records(pictures) -> None:
    found = found_in(pictures)
    assert all(isinstance(category, ttgcd.Category) for category in found.categories)
    assert [c.id for c in found.categories] == list(range(len(found.categories)))
    assert sum(c.count for c in found.categories) == 96
    assert found.categories[0].evidence is not None and found.categories[-1].born_at == 63


def test_a_misspelt_option_names_the_right_one(pictures) -> None:
    with pytest.raises(ttgcd.InputError, match="no option 'novle': did you mean 'novel'"):
        ttgcd.discover(pictures, known="cat,dog", novle=3)
    with pytest.raises(ttgcd.InputError, match="nonsense"):
        ttgcd.discover(pictures, known="cat,dog", nonsense=3, model="mini")
    with pytest.raises(ttgcd.InputError, match="preset"):
        ttgcd.discover(pictures, known="cat,dog", preset="paper", method="kmeans", model="mini")


@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_goes_through_discover_to_report_and_evaluation(
    name, pictures, tmp_path
) -> None:
    """With L unknown, by the command that a user would type."""
    from ttgcd.datasets.iconshift import load_iconshift

    np.save(tmp_path / "images.npy", pictures)
    labels = load_iconshift("handdrawn")[1][:96]
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    (tmp_path / "labels.csv").write_text("id,label\n" + rows)
    out = tmp_path / "out"
    options = (
        ["--set", "warmup=48"]
        if hasattr(ttgcd.methods.registry.method_class(name), "warmup")
        else []
    )
    arguments = ["discover", str(tmp_path / "images.npy"), "--known", "umbrella,dog,house"]
    arguments += ["--model", "mini", "--method", name, "--out", str(out), "--batch-size", "32"]
    assert main([*arguments, "--labels", str(tmp_path / "labels.csv"), "--quiet", *options]) == 0
    table = pq.read_table(out / "assignments.parquet")
    assert table.num_rows == 96
    record = json.loads((out / "run.json").read_text())
    assert 0 <= record["scores"]["all"] <= 100
    categories = json.loads((out / "categories.json").read_text())["categories"]
    assert max(table.column("category").to_pylist()) < len(categories)
    assert "<html" in (out / "report.html").read_text("utf-8")
    assert main(["evaluate", str(out), str(tmp_path / "labels.csv")]) == 0


@pytest.mark.parametrize("method", ["hdbscan", "talon"])
def test_more_categories_than_announced_are_no_accident(method, tmp_path) -> None:
    features, anchors, _ = world(0, n=300, classes=12)
    options = {"min_cluster_size": 5} if method == "hdbscan" else {"open_ended": True, "warmup": 64}
    found = ttgcd.discover(
        features, known=list("abcd"), anchors=anchors, novel=0, method=method, changes=options
    )
    assert max(c.id for c in found.categories if c.count) >= 4


# -- after a run ----------------------------------------------------------------------------------


@pytest.fixture
def halves(tmp_path):
    features, anchors, _ = world(1, n=600)
    options = {
        "shuffle": False,
        "known": list("abcd"), "anchors": anchors, "novel": 4, "batch_size": 50, "preset": "paper",
        "changes": {"warmup": 100},
    }  # fmt: skip
    whole = ttgcd.discover(features, out=tmp_path / "whole", **options)
    first = ttgcd.discover(features[:300], out=tmp_path / "first", **options)
    return features, whole, first


def test_going_on_equals_one_long_run(halves, tmp_path) -> None:
    features, whole, first = halves
    second = first.update(features[300:], out=tmp_path / "second")
    both = [*first.to_arrow().column("category").to_pylist(),
            *second.to_arrow().column("category").to_pylist()]  # fmt: skip
    assert both == whole.to_arrow().column("category").to_pylist()
    third = ttgcd.load(tmp_path / "second")
    assert third.samples == 300
    state = json.loads((tmp_path / "second" / "state" / "state.json").read_text())
    assert state["values"]["seen"] == 600


def test_going_on_by_command_and_after_an_interruption(halves, tmp_path) -> None:
    features, whole, _ = halves
    np.save(tmp_path / "more.npy", features[300:])
    arguments = ["discover", str(tmp_path / "more.npy"), "--from", str(tmp_path / "first")]
    assert main([*arguments, "--out", str(tmp_path / "second"), "--quiet"]) == 0
    second = ttgcd.load(tmp_path / "second").to_arrow().column("category").to_pylist()
    assert second == whole.to_arrow().column("category").to_pylist()[300:]
    assert main([*arguments, "--out", str(tmp_path / "second"), "--resume", "--quiet"]) == 0
    assert main([*arguments, "--known", "x", "--out", str(tmp_path / "third"), "--quiet"]) == 2


def test_predict_is_pure_and_agrees_with_the_state(halves, tmp_path) -> None:
    features = halves[0]
    before = {p: p.read_bytes() for p in (tmp_path / "first").rglob("*") if p.is_file()}
    loaded = ttgcd.load(tmp_path / "first")
    one, two = loaded.predict(features[300:]), loaded.predict(features[300:])
    assert one.equals(two) and one.num_rows == 300
    few, same = loaded.predict(features[300:310]), one.slice(0, 10)
    for name in ("id", "category", "kind", "name"):
        assert few.column(name).equals(same.column(name)), name
    for name in ("score", "margin", "novelty", "confidence"):
        # The last bits of a product depend on how many rows it has, on some processors.
        np.testing.assert_allclose(few.column(name), same.column(name), atol=1e-5, err_msg=name)
    assert before == {p: p.read_bytes() for p in (tmp_path / "first").rglob("*") if p.is_file()}
    columns = ["id", "category", "kind", "name", "score", "margin", "novelty", "confidence"]
    assert one.column_names == columns


def test_assign_by_command_writes_rows_or_prints_them(halves, tmp_path, capfdbinary) -> None:
    features, _, first = halves
    np.save(tmp_path / "more.npy", features[300:])
    command = ["assign", str(tmp_path / "first"), str(tmp_path / "more.npy")]
    assert main([*command, "--out", str(tmp_path / "given")]) == 0
    table = pq.read_table(tmp_path / "given" / "assignments.parquet")
    assert table.equals(first.predict(features[300:]))
    capfdbinary.readouterr()
    assert main(command) == 0
    assert capfdbinary.readouterr().out.count(b"\n") == 301
    assert main([*command, "--out", str(tmp_path / "given")]) == 2


def test_images_are_assigned_under_the_adapted_encoder(pictures, tmp_path) -> None:
    options = {"warmup": 64, "epochs": 3, "lr": 0.5}
    found = found_in(pictures, out=tmp_path / "out", changes=options)
    again = ttgcd.load(tmp_path / "out").predict(pictures)
    late = found.to_arrow().column("score").to_numpy()[64:]
    # Prototypes move on after an answer, but the features are the same.
    assert np.abs(again.column("score").to_numpy()[64:] - late).mean() < 0.2
    plain = found_in(pictures, out=tmp_path / "plain", changes={"warmup": 64, "epochs": 0})
    assert not np.allclose(plain.predict(pictures).column("score"), again.column("score"))


def test_rows_that_do_not_fit_the_run_are_refused(halves, tmp_path, pictures) -> None:
    _, _, first = halves
    with pytest.raises(ttgcd.InputError, match="is on embeddings, these are images"):
        first.predict(pictures)
    with pytest.raises(ttgcd.InputError, match="holds no finished run"):
        ttgcd.load(tmp_path)
    with pytest.raises(ttgcd.InputError, match="holds no finished run"):
        ttgcd.load(tmp_path / "nothing")


def test_merged_categories_are_predicted_under_their_new_id(halves, tmp_path) -> None:
    features, _, first = halves
    before = first.predict(features[300:])
    assert main(["edit", str(tmp_path / "first"), "merge", "5", "4"]) == 0
    assert main(["edit", str(tmp_path / "first"), "rename", "4", "moose"]) == 0
    after = ttgcd.load(tmp_path / "first").predict(features[300:])
    was, now = before.column("category").to_numpy(), after.column("category").to_numpy()
    assert 5 in was and 5 not in now and (now[was == 5] == 4).all()
    names = np.array(after.column("name").to_pylist())
    assert set(names[now == 4]) == {"moose"}


def test_unit_rows_are_not_needed(tmp_path) -> None:
    features, anchors, _ = world(1, n=200)
    options = {"known": list("abcd"), "novel": 4, "preset": "paper", "changes": {"warmup": 100}}
    one = ttgcd.discover(features, anchors=anchors, **options)
    two = ttgcd.discover(features * 3, anchors=unit(anchors * 2), **options)
    assert one.to_arrow().column("category").equals(two.to_arrow().column("category"))
