"""`ttgcd bench pack`: from labelled images and a model to a pack with its vocabulary."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ttgcd.bench.giveaways import harmless
from ttgcd.bench.packs import read_pack, read_words, words_path
from ttgcd.cli import main
from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

CLASSES = ("book", "cat", "moon", "star")
WORDS = "@words.txt"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``icons/`` with a folder for each class, ``labels.csv``, and a few words."""
    monkeypatch.chdir(tmp_path)
    source, names = load_iconshift("line")
    lines = ["id,label"]
    for name in CLASSES:
        places = [at for at, other in enumerate(names) if other == name][:4]
        for number, at in enumerate(places):
            path = tmp_path / "icons" / name.replace("star", "north_star") / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read(at))  # type: ignore[arg-type]
            lines.append(f"{path.relative_to(tmp_path / 'icons').as_posix()},{name}")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "words.txt").write_text("tree\nwildcat\nnotebook\nspoon\n")
    return tmp_path


def pack(*arguments: str) -> int:
    return main(["bench", "pack", *arguments, "--out", "packs"])


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert pack(*arguments) == 2
    return capsys.readouterr().err


def test_a_folder_of_class_folders_becomes_a_pack_of_what_the_model_says(here, capsys):
    assert pack("icons", "--vocabulary", WORDS) == 0
    made = read_pack(here / "packs" / "icons.npz")
    assert made.names == ("book", "cat", "moon", "north star") and made.model == "mini"
    assert np.bincount(made.labels).tolist() == [4, 4, 4, 4] and made.known is None
    vlm = load_vlm("mini")
    # Half precision keeps three digits.
    assert np.allclose(made.texts, text_anchors(vlm, made.names), atol=1e-3)
    assert np.isclose(made.logit_scale, vlm.logit_scale)
    images = [np.asarray(Image.open(p).convert("RGB")) for p in sorted(here.glob("icons/moon/*"))]
    expected = vlm.encode_images(vlm.preprocess(np.stack(images))).numpy()
    assert np.allclose(made.features[made.labels == 2], expected, atol=1e-3)
    words = read_words(here / "packs", "mini")
    assert words is not None and words.names == ("tree", "wildcat", "notebook", "spoon")
    assert np.allclose(words.vectors, text_anchors(vlm, words.names), atol=1e-3)
    said = capsys.readouterr().out
    assert "packs/icons.npz: 16 images, 4 classes, mini" in said and "4 words" in said


def test_labels_may_come_from_a_file(here):
    assert pack("icons", "--labels", "labels.csv", "--name", "told", "--vocabulary", "none") == 0
    made = read_pack(here / "packs" / "told.npz")
    assert made.names == CLASSES and np.bincount(made.labels).tolist() == [4, 4, 4, 4]
    assert not words_path(here / "packs", "mini").exists()


@pytest.mark.parametrize("numbered", [True, False])
def test_a_data_set_of_hugging_face_gives_the_same_features(here, numbered):
    datasets = pytest.importorskip("datasets")
    files = sorted(here.glob("icons/*/*.png"))
    names = [path.parent.name for path in files]
    features = datasets.Features(
        {
            "picture": datasets.Image(),
            "kind": datasets.ClassLabel(names=sorted(set(names)))
            if numbered
            else datasets.Value("string"),
        }
    )
    rows = {"picture": [str(path) for path in files], "kind": names}
    whole = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict({"train": whole}).save_to_disk("saved")
    columns = ["--image-column", "picture", "--label-column", "kind", "--split", "train"]
    assert pack("hf:saved", *columns, "--vocabulary", "none") == 0
    assert pack("icons", "--vocabulary", "none") == 0
    one, other = (read_pack(here / "packs" / f"{name}.npz") for name in ("saved", "icons"))
    assert np.array_equal(one.labels, other.labels) and one.names == other.names
    assert np.allclose(one.features, other.features, atol=1e-3)


def test_a_benchmark_makes_a_pack_of_each_stream_with_its_own_known_classes(here):
    small = ["--limit", "60", "--vocabulary", "none"]
    assert pack("iconshift", "--streams", "line, pixel", *small) == 0
    known, novel = iconshift_classes()
    for stream in ("line", "pixel"):
        made = read_pack(here / "packs" / f"iconshift-{stream}.npz")
        assert len(made.labels) == 60 and made.known == tuple(range(len(known)))
        assert set(made.names) == {*known, *novel} and made.names[: len(known)] == known


def test_templates_are_averaged_and_packs_that_are_there_stay(here, capsys):
    templates = ["an icon of a {}.", "{}"]
    given = [word for text in templates for word in ("--template", text)]
    assert pack("icons", *given, "--vocabulary", "none") == 0
    path = here / "packs" / "icons.npz"
    expected = text_anchors(load_vlm("mini"), read_pack(path).names, templates)
    assert np.allclose(read_pack(path).texts, expected, atol=1e-3)
    before = path.read_bytes()
    assert pack("icons", "--vocabulary", "none") == 0
    assert path.read_bytes() == before and "is there already" in capsys.readouterr().err
    assert pack("icons", "--vocabulary", "none", "--overwrite") == 0
    assert not np.allclose(read_pack(path).texts, expected, atol=1e-2)


def test_an_image_that_cannot_be_read_is_left_out_and_said(here, capsys):
    (here / "icons" / "cat" / "1.png").write_bytes(b"no picture")
    assert pack("icons", "--vocabulary", "none") == 0
    assert "icons: 1 image could not be read" in capsys.readouterr().err
    assert np.bincount(read_pack(here / "packs" / "icons.npz").labels).tolist() == [4, 3, 4, 4]


def test_what_cannot_be_used_is_refused_with_the_way_out(here, capsys):
    assert "not a folder" in refused(capsys, "nowhere")
    assert "--streams" in refused(capsys, "icons", "--streams", "line")
    assert "--limit" in refused(capsys, "icons", "--limit", "0")
    (here / "labels.csv").write_text("id,label\nbook/0.png,book\n")
    assert "no label for 15 of 16 images" in refused(capsys, "icons", "--labels", "labels.csv")
    assert pack("icons", "--vocabulary", WORDS) == 0
    (here / "words.txt").write_text("other\nwords\n")
    capsys.readouterr()
    said = refused(capsys, "icons", "--vocabulary", WORDS, "--name", "again")
    assert "holds other words" in said and "--out" in said
    assert not (here / "packs" / "again.npz").exists()


def test_a_data_set_without_that_split_or_column_names_those_it_has(here, capsys):
    datasets = pytest.importorskip("datasets")
    rows = {"image": [Image.new("RGB", (8, 8))] * 2, "kind": ["a", "b"]}
    datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows)}).save_to_disk("saved")
    assert "one of train" in refused(capsys, "hf:saved", "--split", "all")
    said = refused(capsys, "hf:saved", "--split", "train")
    assert "no column 'label' but image, kind" in said and "--label-column" in said


def obvious(words, hidden):
    """The rule, word by word and name by name."""

    def letters(text: str) -> str:
        return " ".join("".join(c if c.isalpha() else " " for c in text.lower()).split())

    out = []
    for word in map(letters, words):
        stays = True
        for name in map(letters, hidden):
            if name and (name in word or (len(word) >= 4 and word in name)):
                stays = False
        out.append(stays)
    return out


def test_the_vocabulary_loses_exactly_what_gives_a_hidden_name_away():
    rng = np.random.default_rng(0)
    parts = ["car", "cart", "Oak", "tree", "ant", "plant", "über", "a.b", "3", "north-star", "_"]
    phrases = [" ".join(p) for n in (1, 2) for p in itertools.permutations(parts, n)]
    for _ in range(50):
        words = rng.choice(phrases, 30).tolist()
        hidden = rng.choice(phrases, rng.integers(0, 4)).tolist()
        assert harmless(words, hidden).tolist() == obvious(words, hidden), (words, hidden)


def test_a_file_that_is_no_pack_is_named(here):
    from ttgcd.errors import InputError

    (here / "bad.npz").write_bytes(b"no array")
    with pytest.raises(InputError, match=r"bad\.npz cannot be read"):
        read_pack(here / "bad.npz")
    good = {"v": np.eye(3, 5), "y": [0, 1, 1], "text": np.eye(2, 5), "names": ["a", "b"]}
    cases = {
        "has no model": {},
        "one row a label": {"model": "m", "y": [0, 1]},
        "one row a name": {"model": "m", "text": np.eye(3, 5)},
        "places in the 2 names": {"model": "m", "y": [0, 1, 2]},
        "not finite": {"model": "m", "v": np.full((3, 5), np.nan)},
    }
    for message, changed in cases.items():
        buffer = io.BytesIO()
        np.savez(buffer, **{**good, **changed})  # type: ignore[arg-type]
        (here / "bad.npz").write_bytes(buffer.getvalue())
        with pytest.raises(InputError, match=message):
            read_pack(here / "bad.npz")
