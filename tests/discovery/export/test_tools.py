"""Exports read back by the tools that they are for."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.discovery.edits.runs import answers
from tests.discovery.export.photos import photo_run
from ttgcd.cli import main
from ttgcd.discovery.edits import Edit, EditedFolder
from ttgcd.discovery.export import export
from ttgcd.discovery.export.xmp import with_keyword
from ttgcd.errors import InputError


def test_csv_holds_every_row_with_its_edited_category(tmp_path: Path) -> None:
    _, out = photo_run(tmp_path)
    EditedFolder(out).edit(Edit("rename", category=3, name='moose, "big"'))
    export(out, "csv", tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["id"]: (int(row["category"]), row["kind"], row["name"]) for row in rows} == answers(
        out
    )


@pytest.mark.parametrize("name", ["moose", "train", "test", "validation"])
def test_datasets_reads_the_imagefolder_whatever_a_category_is_called(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    photos, out = photo_run(tmp_path)
    EditedFolder(out).edit(Edit("rename", category=3, name=name))
    export(out, "imagefolder", tmp_path / "set")
    loaded = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "set"), cache_dir=str(tmp_path / "cache")
    )
    assert list(loaded) == ["train"] and len(loaded["train"]) == 12
    truth = answers(out)
    for row in loaded["train"]:
        assert (row["category"], row["kind"], row["label"]) == truth[row["id"]]
        with Image.open(photos / row["id"]) as original:
            assert np.array_equal(np.asarray(row["image"]), np.asarray(original))


def test_webdataset_reads_the_shards(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    photos, out = photo_run(tmp_path)
    export(out, "webdataset", tmp_path / "shards", shard=5)
    assert len(list((tmp_path / "shards").iterdir())) == 3
    urls = str(tmp_path / "shards" / "shard-{000000..000002}.tar")
    truth, seen = answers(out), 0
    for sample in wds.WebDataset(urls, shardshuffle=False).decode("rgb8"):
        row = sample["json"]
        assert int(sample["cls"]) == truth[row["id"]][0] and row["name"] == truth[row["id"]][2]
        with Image.open(photos / row["id"]) as original:
            assert np.array_equal(sample["png"], np.asarray(original))
        seen += 1
    assert seen == 12


def test_equal_exports_have_equal_bytes(tmp_path: Path) -> None:
    _, out = photo_run(tmp_path)
    for target in ("a", "b"):
        export(out, "webdataset", tmp_path / target)
    shard = "shard-000000.tar"
    assert (tmp_path / "a" / shard).read_bytes() == (tmp_path / "b" / shard).read_bytes()


def test_label_studio_takes_the_tasks_with_their_interface(tmp_path: Path) -> None:
    interface = pytest.importorskip("label_studio_sdk.label_interface")
    _, out = photo_run(tmp_path)
    EditedFolder(out).edit(Edit("rename", category=3, name='moose & "calf" <1>'))
    export(out, "labelstudio", tmp_path / "tasks")
    tasks = json.loads((tmp_path / "tasks" / "tasks.json").read_text("utf-8"))
    project = interface.LabelInterface((tmp_path / "tasks" / "interface.xml").read_text("utf-8"))
    assert len(tasks) == 12
    for task in tasks:
        assert project.validate_task({"data": task["data"]})
        for prediction in task["predictions"]:
            assert project.validate_prediction(prediction)
            assert 0 <= prediction["score"] <= 1


def test_label_studio_tasks_have_the_documented_fields(tmp_path: Path) -> None:
    _, out = photo_run(tmp_path)
    export(out, "labelstudio", tmp_path / "tasks", url_prefix="https://pictures.example/")
    task = json.loads((tmp_path / "tasks" / "tasks.json").read_text("utf-8"))[1]
    assert task["data"]["image"] == "https://pictures.example/trip/day%201/img-01.png"
    result = task["predictions"][0]["result"][0]
    assert set(result) == {"from_name", "to_name", "type", "value"}
    assert result["value"]["choices"] == [answers(out)["trip/day 1/img-01.png"][2]]


# -- xmp ----------------------------------------------------------------------------------------

DC = "{http://purl.org/dc/elements/1.1/}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"

EXISTING = b"""<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="digiKam">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:darktable="http://darktable.sf.net/"
    xmp:Rating="4" darktable:auto_presets_applied="1">
   <!-- kept -->
   <dc:subject><rdf:Bag><rdf:li>Norway</rdf:li></rdf:Bag></dc:subject>
   <darktable:history><rdf:Seq><rdf:li darktable:num="0"/></rdf:Seq></darktable:history>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""


def keywords(sidecar: bytes) -> list[str]:
    import xml.etree.ElementTree as ET

    return [e.text or "" for e in ET.fromstring(sidecar).iterfind(f".//{DC}subject//{RDF}li")]


def test_sidecars_stand_beside_the_images_with_the_category_as_keyword(tmp_path: Path) -> None:
    photos, out = photo_run(tmp_path)
    done = export(out, "xmp")
    assert done.images == 12 and done.target == photos
    for image, answer in answers(out).items():
        assert keywords((photos / f"{image}.xmp").read_bytes()) == [answer[2]]


def test_an_existing_sidecar_is_merged_and_keeps_everything(tmp_path: Path) -> None:
    merged = with_keyword(EXISTING, "moose")
    assert keywords(merged) == ["Norway", "moose"]
    for kept in (b'xmp:Rating="4"', b"darktable:auto_presets_applied", b"<!-- kept -->"):
        assert kept in merged
    assert b"darktable:history" in merged and b'darktable:num="0"' in merged
    assert with_keyword(merged, "moose") == merged


def test_a_renamed_category_replaces_its_own_keyword_only() -> None:
    again = with_keyword(with_keyword(EXISTING, "novel 1"), "moose")
    assert keywords(again) == ["Norway", "moose"] and b"novel 1" not in again


def test_a_sidecar_that_is_no_xmp_is_left_alone_and_told(tmp_path: Path) -> None:
    photos, out = photo_run(tmp_path)
    (photos / "img-00.png.xmp").write_bytes(b"<svg/>")
    (photos / "img-02.png.xmp").write_bytes(b"not xml at all")
    done = export(out, "xmp")
    assert done.images == 10 and "left alone" in done.notes[-1]
    assert (photos / "img-00.png.xmp").read_bytes() == b"<svg/>"


def test_names_with_markup_are_escaped_in_sidecars() -> None:
    assert keywords(with_keyword(None, "<b>&amp;")) == ["<b>&amp;"]


# -- the command --------------------------------------------------------------------------------


def test_the_command_exports_and_undoes_a_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos, out = photo_run(tmp_path)
    target = str(tmp_path / "sorted")
    assert main(["export", str(out), "--to", "folders", "--how", "move", "--out", target]) == 0
    assert "--undo" in capsys.readouterr().out
    assert main(["export", target, "--undo"]) == 0
    assert (photos / "img-00.png").exists()
    assert main(["export", str(out), "--to", "csv"]) == 0
    assert (tmp_path / "found.csv").exists()
    assert main(["export", str(out)]) == 2 and main(["export", str(out), "--undo"]) == 2


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    _, out = photo_run(tmp_path)
    with pytest.raises(InputError, match="choose one of"):
        export(out, "powerpoint")
