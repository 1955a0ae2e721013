"""A vocabulary of one's own: it helps to group, with a model and with embeddings."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ttgcd import CategoryDiscovery, discover
from ttgcd.cli import main
from ttgcd.datasets.iconshift import load_iconshift
from ttgcd.discovery.run import load
from ttgcd.errors import InputError
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

KNOWN = ("cat", "key", "umbrella")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Embeddings of drawings, of three names, and of the names of all drawings as words."""
    folder = tmp_path_factory.mktemp("words")
    images, labels = load_iconshift("handdrawn")
    words = sorted(set(labels) - set(KNOWN))
    vlm = load_vlm("mini")
    batches = Stream(images, vlm.preprocess, 128)
    encode = vlm.encoder()
    np.save(folder / "features.npy", np.concatenate([encode(batch.images) for batch in batches]))
    np.save(folder / "anchors.npy", text_anchors(vlm, KNOWN))
    np.save(folder / "words.npy", text_anchors(vlm, words))
    (folder / "words.txt").write_text("\n".join(words) + "\n")
    return folder


def arguments(folder, out, *more):
    return [
        *("discover", str(folder / "features.npy"), "--anchors", str(folder / "anchors.npy")),
        *("--known", ",".join(KNOWN), "--novel", "40", "--out", str(out), "--quiet"),
        *("--logit-scale", "27", *more),
    ]


def labels_of(out):
    return [row["category"] for row in load(out).assignments()]


def test_words_given_as_embeddings_change_the_groups_and_name_them(files, tmp_path):
    words = ["--word-embeddings", str(files / "words.npy")]
    assert main(arguments(files, tmp_path / "without")) == 0
    assert main(arguments(files, tmp_path / "with", *words)) == 0
    named = [*words, "--vocabulary", f"@{files / 'words.txt'}"]
    assert main(arguments(files, tmp_path / "named", *named)) == 0
    assert labels_of(tmp_path / "with") != labels_of(tmp_path / "without")
    assert labels_of(tmp_path / "with") == labels_of(tmp_path / "named")

    def suggested(out):
        found = json.loads((tmp_path / out / "categories.json").read_text())["categories"]
        return {name for c in found for name in c["suggested_names"]}

    assert not suggested("with")
    assert suggested("named") & set((files / "words.txt").read_text().split("\n"))


def test_the_estimator_takes_words(files):
    given = {key: np.load(files / f"{key}.npy") for key in ("features", "anchors", "words")}
    options = {"n_novel": 40, "logit_scale": 27.0}
    plain = CategoryDiscovery(given["anchors"], **options).fit_predict(given["features"])
    helped = CategoryDiscovery(given["anchors"], word_embeddings=given["words"], **options)
    assert (helped.fit_predict(given["features"]) != plain).any()
    with pytest.raises(InputError, match="word_embeddings have shape"):
        CategoryDiscovery(given["anchors"], word_embeddings=np.eye(3)).fit(given["features"])


def test_words_of_ones_own_help_to_group_images(tmp_path):
    images, labels = load_iconshift("handdrawn")
    words = sorted(set(labels) - set(KNOWN))
    settings = {"known": KNOWN, "novel": 40, "model": "mini"}
    discover(images, out=tmp_path / "plain", changes={"words": 0}, **settings)
    discover(images, out=tmp_path / "own", changes={"words": 0}, vocabulary=words, **settings)
    discover(images, out=tmp_path / "none", vocabulary="none", **settings)
    assert labels_of(tmp_path / "plain") == labels_of(tmp_path / "none")
    assert labels_of(tmp_path / "plain") != labels_of(tmp_path / "own")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--word-embeddings", "{words}", "--vocabulary", "moose,elk"], "2 words are in the voc"),
        (["--vocabulary", "moose,elk"], "give those of the vocabulary too"),
        (["--word-embeddings", "{words}", "--vocabulary", "none"], "it is 'none'"),
        (["--word-embeddings", "{missing}"], "missing.npy"),
        (["--logit-scale", "0"], "logit_scale must be above 0"),
    ],
)
def test_bad_words_are_one_line_and_leave_nothing(files, tmp_path, capsys, change, message):
    paths = {"words": files / "words.npy", "missing": files / "missing.npy"}
    more = [text.format(**paths) for text in change]
    assert main(arguments(files, tmp_path / "out", *more)) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_is_not_continued_with_other_words(files, tmp_path, capsys):
    words = ["--word-embeddings", str(files / "words.npy")]
    assert main(arguments(files, tmp_path / "out", *words)) == 0
    assert main(arguments(files, tmp_path / "out", "--resume")) == 2
    assert "words" in capsys.readouterr().err
