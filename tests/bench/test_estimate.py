"""``ttgcd estimate --by silhouette``, the paper's, on embeddings and on images."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ttgcd.cli import main
from ttgcd.prototypes.count import estimate_novel_count

PAPER = ("estimate", "--by", "silhouette")


@pytest.fixture
def embeddings(tmp_path):
    rng = np.random.default_rng(0)
    points = np.repeat(rng.normal(size=(7, 16)), 30, axis=0) + 0.2 * rng.normal(size=(210, 16))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    path = tmp_path / "points.npy"
    np.save(path, points[rng.permutation(210)].astype(np.float32))
    return str(path)


def test_it_says_how_many_and_shows_the_trace(embeddings, tmp_path, capsys):
    plot = tmp_path / "trace.png"
    arguments = [*PAPER, embeddings, "--known", "a,b,c", "--json", "--plot", str(plot)]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["novel"], answer["clusters"], answer["samples"]) == (4, 7, 210)
    assert [7, max(score for _, score in answer["trace"])] in answer["trace"]
    rows = np.load(embeddings)[np.random.RandomState(0).permutation(210)]  # in the seed's order
    trace = [[k, round(score, 6)] for k, score in estimate_novel_count(rows, 3).trace]
    assert (answer["by"], answer["trace"]) == ("silhouette", trace)
    assert f"k = {answer['trace'][0][0]}: silhouette" in err
    assert plot.read_bytes()[:4] == b"\x89PNG"


def test_buffer_or_stream_and_grid(embeddings, capsys):
    main([*PAPER, embeddings, "--known", "a,b", "--warmup", "60", "--json", "--quiet"])
    assert json.loads(capsys.readouterr().out)["samples"] == 60
    arguments = ["--from", "stream", "--method", "grid", "--max-clusters", "9", "--quiet"]
    assert main([*PAPER, embeddings, "--known", "a,b", *arguments]) == 0
    assert "5 novel classes beside 2 known ones" in capsys.readouterr().out


def test_images_are_encoded_by_the_model(cifar, model, tmp_path, capsys):
    images = tmp_path / "images.npy"
    np.save(images, np.load(cifar / "CIFAR-10-C" / "fog.npy")[:60])
    arguments = ["--known", "a,b", "--model", model, "--json", "--quiet"]
    assert main([*PAPER, str(images), *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 60


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--known", "a,b", "--warmup", "1"], "--warmup must be at least 2"),
        (["--known", ",".join(map(str, range(150)))], "too few to look for novel classes"),
        (["--known", "a,b", "--plot", "no/where/x.png", "--quiet"], "cannot write the plot"),
    ],
)
def test_mistakes_are_named(embeddings, arguments, says, capsys):
    assert main([*PAPER, embeddings, *arguments]) == 2
    assert says in capsys.readouterr().err
