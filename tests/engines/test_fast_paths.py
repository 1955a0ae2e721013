"""What is done for speed changes no answer: the plain way gives the same ids, sample by sample."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import ttgcd
from ttgcd.engines import features as feature_files
from ttgcd.engines import session
from ttgcd.methods import zero_shot
from ttgcd.prototypes import bank, partition, trust
from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.confidence import StreamFacts
from ttgcd.report.thumbnails import KeptThumbnails, thumbnail
from ttgcd.streams import stream
from ttgcd.streams.open import open_source

KNOWN, NOVEL, DIM = 6, 3, 24


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory):
    """3,000 rows on disk, nine directions, and the anchors of six of them."""
    rng = np.random.default_rng(3)
    centres = unit(rng.normal(size=(KNOWN + NOVEL, DIM)))
    rows = centres[rng.integers(0, len(centres), 3000)] + 0.16 * rng.normal(size=(3000, DIM))
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, rows.astype(np.float32))
    return str(path), centres[:KNOWN]


def _sums_plainly(features, labels, weights, samples):
    present = np.unique(labels)
    one_hot = (labels == present[:, None]) * np.asarray(weights, np.float64)
    return present, one_hot @ features[samples].astype(np.float64)


def _pseudo_labels_plainly(probabilities):
    top_two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return probabilities.argmax(axis=1), top_two[:, 1] - top_two[:, 0]


def _smooth_plainly(rows, near=None):
    near = rows @ rows.T
    np.fill_diagonal(near, -9)
    count = partition.NEIGHBOURS
    nearest = np.argpartition(-near, count - 1, axis=1)[:, :count]
    return unit(rows + rows[nearest].mean(axis=1))


@pytest.mark.parametrize("preset", [None, "paper"])
def test_the_fast_and_the_plain_way_give_the_same_ids(embeddings, monkeypatch, preset) -> None:
    path, anchors = embeddings

    def ids() -> list[int]:
        names = [f"thing {k}" for k in range(KNOWN)]
        changes = {"warmup": 256}
        found = ttgcd.discover(
            path, known=names, novel=NOVEL, anchors=anchors, preset=preset, changes=changes
        )
        table = found.to_arrow()
        assert table.column("batch").to_pylist() == [row // 128 for row in range(3000)]
        return table.column("category").to_pylist()

    fast = ids()
    monkeypatch.setattr(stream, "_EMBEDDINGS_AT_ONCE", 1)
    monkeypatch.setattr(feature_files, "_AT_ONCE", 1)
    monkeypatch.setattr(session, "REVISED_AT_ONCE", 100)
    monkeypatch.setattr(bank, "_sums_of", _sums_plainly)
    monkeypatch.setattr(zero_shot, "pseudo_labels", _pseudo_labels_plainly)
    for room in (partition, trust):
        monkeypatch.setattr(room, "smooth", _smooth_plainly)
    assert ids() == fast
    assert len(set(fast)) == KNOWN + NOVEL


def test_the_distance_to_the_rest_of_a_category_needs_no_copy_of_it() -> None:
    rng = np.random.default_rng(0)
    rows, categories = unit(rng.normal(size=(200, 12))), rng.integers(0, 5, 200)
    facts = StreamFacts(rows, categories, unit(rng.normal(size=(3, 12))))
    near, _ = facts._near(rows, categories, inside=True)
    for row in range(0, 200, 17):
        others = (categories == categories[row]) & (np.arange(200) != row)
        rest = rows[others].astype(np.float64).sum(axis=0)
        assert near[row] == pytest.approx(rows[row] @ rest / np.linalg.norm(rest), abs=1e-4)


@pytest.mark.parametrize("shape", [(300, 500), (96, 128), (40, 30), (20, 900)])
def test_a_picture_kept_while_decoding_is_the_one_that_would_be_made_later(shape, tmp_path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (*shape, 3), np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    (tmp_path / "one.png").write_bytes(data.getvalue())
    source = open_source(str(tmp_path))
    kept = KeptThumbnails(112, most=1)
    kept.take(0, pixels)
    later = thumbnail(source, 0, 112)
    assert later is not None and np.array_equal(np.asarray(kept.get(0)), np.asarray(later))
    kept.take(1, pixels)
    assert kept.get(1) is None  # no room: it is read again
