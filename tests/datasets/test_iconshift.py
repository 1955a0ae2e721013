from __future__ import annotations

import collections
import hashlib
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ttgcd import data
from ttgcd.datasets.iconshift import iconshift_classes, iconshift_domains, load_iconshift
from ttgcd.errors import InputError
from ttgcd.streams.base import Source

INDEX = json.loads(data.path("iconshift", "index.json").read_text())


@pytest.mark.parametrize("domain", iconshift_domains())
def test_shipped_files_are_the_ones_that_were_counted(domain):
    facts = INDEX["domains"][domain]
    path = data.path("iconshift", facts["file"])
    assert hashlib.sha256(path.read_bytes()).hexdigest() == facts["sha256"]
    source, labels = load_iconshift(domain)
    assert isinstance(source, Source)
    assert len(source) == len(labels) == facts["images"]
    assert len(set(labels)) == facts["classes"]
    assert len({source.id(i) for i in range(len(source))}) == len(source)


def test_split_covers_every_class_once():
    known, novel = iconshift_classes()
    assert sorted(known + novel) == sorted(INDEX["classes"])
    assert not set(known) & set(novel)
    assert abs(len(known) - len(novel)) <= 1
    seed = json.loads(data.path("splits", "iconshift.json").read_text())["seed"]
    order = np.random.default_rng(seed).permutation(len(INDEX["classes"]))
    assert sorted(np.array(INDEX["classes"])[order[: len(known)]]) == sorted(known)


def test_images_are_lossless_rgb_of_one_size():
    source, _ = load_iconshift(iconshift_domains()[0])
    for position in (0, len(source) - 1):
        image = Image.open(io.BytesIO(source.read(position)))
        assert (image.format, image.mode, image.size) == ("PNG", "RGB", (48, 48))


def test_every_image_has_an_origin_and_a_licence_without_noncommercial_terms():
    licences = collections.Counter()
    for domain in iconshift_domains():
        table = pq.read_table(data.path("iconshift", f"{domain}.parquet")).to_pydict()
        assert all(table["author"]) and all(table["set"]) and all(table["icon"])
        licences.update(table["licence"])
    assert licences and not [name for name in licences if not name or "NC" in name]


def test_all_is_every_domain_one_after_the_other():
    source, labels = load_iconshift("all")
    assert len(source) == sum(facts["images"] for facts in INDEX["domains"].values())
    first, first_labels = load_iconshift(iconshift_domains()[0])
    assert [source.id(i) for i in range(5)] == [first.id(i) for i in range(5)]
    assert labels[: len(first)] == first_labels


def test_unknown_domain_names_the_choices():
    with pytest.raises(InputError, match="emoji"):
        load_iconshift("oil paintings")


def test_a_domain_as_a_folder_of_files(tmp_path, capsys) -> None:
    from ttgcd.cli import main
    from ttgcd.streams import open_source, read_labels, read_names

    target = str(tmp_path / "icons")
    assert main(["data", "prepare", "iconshift", target, "--domain", "handdrawn"]) == 0
    source = open_source(target)
    labels = read_labels(f"{target}-labels.csv")
    assert len(source) == 295
    assert {source.id(n) for n in range(len(source))} == set(labels)
    assert set(read_names(f"@{target}-known.txt")) < set(labels.values())
    assert source.notes() == ()
    assert main(["data", "prepare", "iconshift", target]) == 2
    assert "choose a new folder" in capsys.readouterr().err
