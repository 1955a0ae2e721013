"""What looks wrong is said before and after a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ttgcd.cli import main
from ttgcd.discovery.sanity import check_count, late_classes
from ttgcd.errors import InputError


def test_more_novel_categories_than_samples_are_refused() -> None:
    with pytest.raises(InputError, match="5,000 novel categories among 315 samples"):
        check_count(5000, 315)
    assert "two or three" in check_count(120, 315)[0]
    assert check_count(40, 315) == []


@pytest.fixture
def sorted_stream(tmp_path: Path) -> list[str]:
    """Embeddings of four classes, one after the other, with labels."""
    rng = np.random.default_rng(0)
    centres = np.eye(4, 16, dtype=np.float32)
    rows = np.repeat(centres, 60, axis=0) + rng.normal(0, 0.05, (240, 16)).astype(np.float32)
    np.save(tmp_path / "e.npy", rows)
    np.save(tmp_path / "a.npy", centres[:3])
    names = np.repeat(["ant", "bee", "cat", "dog"], 60)
    lines = [f"{number},{name}" for number, name in enumerate(names)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *lines]) + "\n")
    command = ["discover", str(tmp_path / "e.npy"), "--anchors", str(tmp_path / "a.npy")]
    return [*command, "--known", "ant,bee,cat", "--out", str(tmp_path / "out"), "--quiet"]


def test_the_command_refuses_it_before_anything_is_written(
    sorted_stream: list[str], tmp_path: Path, capsys
) -> None:
    assert main([*sorted_stream, "--novel", "5000"]) == 2
    assert "--novel auto" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_classes_that_came_after_the_buffer_are_named(sorted_stream: list[str], capsys) -> None:
    assert main([*sorted_stream, "--novel", "1", "--warmup", "100", "--in-order"]) == 0
    said = capsys.readouterr().out
    assert "1 known class was not among the first 100 samples" in said
    assert "came only later: cat." in said and "random order" in said
    assert main([*sorted_stream, "--novel", "1", "--warmup", "100",
                 "--overwrite"]) == 0  # fmt: skip
    assert "not among the first" not in capsys.readouterr().out


def test_a_folder_sorted_by_class_is_seen_before_the_run(tmp_path: Path, capsys) -> None:
    from PIL import Image

    for number, name in enumerate(("ant", "bee", "cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for shade in range(6):
            image = Image.new("RGB", (32, 32), (60 * number, 40 * shade, 90))
            image.save(tmp_path / "photos" / name / f"{shade}.png")
    command = ["discover", str(tmp_path / "photos"), "--known", "ant,bee", "--novel", "2"]
    command += ["--model", "mini", "--preset", "paper", "--epochs", "0", "--warmup", "8"]
    assert main([*command, "--in-order", "--out", str(tmp_path / "a")]) == 0
    said = capsys.readouterr()
    assert "the first 8 samples, which the method adapts to, are from 2 of 4 folders" in said.err
    assert "are from 2 of 4 folders" in said.out and "leave out --in-order" in said.out
    assert main([*command, "--out", str(tmp_path / "b")]) == 0
    assert "of 4 folders" not in capsys.readouterr().out


def test_few_and_absent_classes_are_no_matter() -> None:
    categories = np.array([0] * 50 + [1] * 3)
    assert late_classes(categories, 20, ["a", "b", "c"]) == []
    assert late_classes(categories, 0, ["a", "b"]) == []
    assert late_classes(categories, 500, ["a", "b"]) == []
