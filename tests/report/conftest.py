"""One real run for the tests that look at its report: `discover` over a folder of icons."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from ttgcd.cli import main
from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift

CLASSES = 12


class RealRun(NamedTuple):
    """Where the icons and the run's files are, and what the run was told."""

    icons: Path
    out: Path
    known: list[str]


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> RealRun:
    """A sorted folder of icons, one broken file in it, and the run of the command over it."""
    place = tmp_path_factory.mktemp("report")
    source, labels = load_iconshift("line")
    known, novel = (list(names[: CLASSES // 2]) for names in iconshift_classes())
    truth = []
    for at, label in enumerate(labels):
        if label in known + novel:
            path = place / "my icons" / label / f"{label} {at}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.open(io.BytesIO(bytes(source.read(at)))).save(path)
            truth.append((f"{label}/{path.name}", label))
    (place / "my icons" / "broken.png").write_bytes(b"no picture")
    with (place / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "label"), *truth])
    command = f"--known {','.join(known)} --novel auto --model mini --preset paper --epochs 1"
    command += " --warmup 64 --in-order --quiet"
    options = ["--labels", str(place / "labels.csv"), "--out", str(place / "found")]
    told = [word for part in command.split(" --") for word in _option(part)]
    assert main(["discover", str(place / "my icons"), *told, *options]) == 0
    return RealRun(place / "my icons", place / "found", known)


def _option(part: str) -> list[str]:
    name, _, value = part.removeprefix("--").partition(" ")
    return [f"--{name}", value] if value else [f"--{name}"]
