"""`ttgcd discover` on images with a small random CLIP in the real format."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.vlm.checkpoints import write_clip
from ttgcd.cli import main
from ttgcd.discovery import discover

COUNT = 60


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and the same pictures as folder, list, tar, parquet and array."""
    root = tmp_path_factory.mktemp("images")
    write_clip(root / "model")
    rng = np.random.default_rng(0)
    shapes = rng.integers(0, 255, (6, 4, 4, 3))
    pictures = [
        np.clip(
            shapes[i % 6].repeat(8, 0).repeat(8, 1) + rng.normal(0, 20, (32, 32, 3)), 0, 255
        ).astype(np.uint8)
        for i in range(COUNT)
    ]
    (root / "photos" / "more").mkdir(parents=True)
    paths, encoded = [], []
    for i, picture in enumerate(pictures):
        path = root / "photos" / ("more" if i >= 30 else "") / f"{i:03d}.png"
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "PNG")
        path.write_bytes(buffer.getvalue())
        paths.append(path)
        encoded.append(buffer.getvalue())
    (root / "list.txt").write_text("\n".join(map(str, paths)))
    with tarfile.open(root / "shard.tar", "w") as tar:
        for i, data in enumerate(encoded):
            info = tarfile.TarInfo(f"{i:03d}.png")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    pq.write_table(pa.table({"image": encoded}), root / "images.parquet")
    np.save(root / "images.npy", np.stack(pictures))
    return root


def options(place: Path) -> dict:
    return {
        "known": ["a", "b", "c"],
        "novel": 3,
        "model": str(place / "model"),
        "batch_size": 16,
        "shuffle": False,
        "preset": "paper",
        "changes": {"warmup": 32, "epochs": 2},
        "vocabulary": ["cat", "dog", "tree", "a"],
    }


def categories(found) -> list[int]:
    return [row["category"] for row in found.assignments()]


def test_every_kind_of_source_gives_the_same_answers(
    place: Path, tmp_path: Path, monkeypatch
) -> None:
    answers = {}
    for name in ("photos", "list.txt", "shard.tar", "images.parquet", "images.npy"):
        found = discover(place / name, out=tmp_path / name, **options(place))
        answers[name] = categories(found)
        assert found.samples == COUNT and found.rejected == 0
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO((place / "list.txt").read_bytes()))
    )
    answers["-"] = categories(discover("-", out=tmp_path / "stdin", **options(place)))
    assert len({tuple(a) for a in answers.values()}) == 1, answers
    assert len(set(answers["photos"])) > 1


def test_the_encoder_was_realigned_and_its_norms_are_in_the_state(place, tmp_path) -> None:
    from safetensors.numpy import load_file

    discover(place / "photos", out=tmp_path / "out", **options(place))
    state = load_file(tmp_path / "out" / "state" / "state.safetensors")
    norms = [key for key in state if key.startswith("norm/")]
    original = load_file(place / "model" / "model.safetensors")
    assert norms
    changed = [
        not np.array_equal(state[key], next(v for k, v in original.items() if k.endswith(key[5:])))
        for key in norms
    ]
    assert any(changed)
    losses = json.loads((tmp_path / "out" / "run.json").read_text())["health"]["realign_losses"]
    assert len(losses) == 2 and losses[1] < losses[0]


def test_broken_images_are_set_aside_and_listed(place: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "photos"
    shutil.copytree(place / "photos", folder)
    (folder / "000-empty.png").write_bytes(b"")
    (folder / "000-text.jpg").write_text("not an image")
    good = (folder / "001.png").read_bytes()
    (folder / "000-cut.png").write_bytes(good[: len(good) // 2])
    broken = discover(folder, out=tmp_path / "broken", **options(place))
    clean = discover(place / "photos", out=tmp_path / "clean", **options(place))
    assert broken.rejected == 3
    listed = (tmp_path / "broken" / "rejected.csv").read_text()
    assert all(name in listed for name in ("000-empty.png", "000-text.jpg", "000-cut.png"))
    assert categories(broken) == categories(clean)


def test_a_shuffled_run_is_the_seeds_and_covers_everything(place: Path, tmp_path: Path) -> None:
    runs = [
        discover(
            place / "photos",
            out=tmp_path / f"{i}",
            **{**options(place), "shuffle": True, "seed": seed},
        )
        for i, seed in enumerate((1, 1, 2))
    ]
    ids = [[row["id"] for row in run.assignments()] for run in runs]
    assert ids[0] == ids[1] != ids[2]
    assert sorted(ids[0]) == sorted(ids[2]) and len(ids[0]) == COUNT
    assert categories(runs[0]) == categories(runs[1])


def test_novel_categories_get_names_from_the_vocabulary_but_no_known_one(place, tmp_path) -> None:
    found = discover(place / "photos", out=tmp_path / "out", **options(place))
    novel = [set(c.suggested_names) for c in found.categories if c.kind == "novel"]
    assert set().union(*novel) == {"cat", "dog", "tree"}
    assert all(c.suggested_names == () for c in found.categories if c.kind == "known")


def test_the_report_shows_the_pictures(place: Path, tmp_path: Path) -> None:
    discover(place / "photos", out=tmp_path / "out", **options(place))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "data:image/" in page and "novel 1" in page


def test_known_only(place: Path, tmp_path: Path) -> None:
    found = discover(place / "photos", out=tmp_path / "o", **{**options(place), "novel": 0})
    assert {c.kind for c in found.categories} == {"known"}


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("nowhere", [], "nowhere"),
        ("photos", ["--model", "no/such-model"], "no/such-model"),
        ("photos", ["--template", "a photo"], "{}"),
        ("photos", ["--labels", "missing.csv"], "missing.csv"),
        ("photos", ["--device", "gpu9"], "gpu9"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(place, tmp_path, capsys, source, more, message):
    command = [
        "discover",
        str(place / source),
        "--known",
        "a,b",
        "--novel",
        "2",
        "--out",
        str(tmp_path / "out"),
        "--quiet",
        "--model",
        str(place / "model"),
        *more,
    ]
    assert main(command) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("ttgcd: error: ") and "\n" not in error and message in error


def test_a_folder_without_a_readable_image_is_refused(place, tmp_path, capsys) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "x.jpg").write_text("text")
    command = [
        "discover",
        str(tmp_path / "photos"),
        "--known",
        "a",
        "--novel",
        "1",
        "--model",
        str(place / "model"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(command) == 2
    assert "no readable image" in capsys.readouterr().err
