"""What is shipped: the wheel, the source archive, and the files that say what they are."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import ttgcd

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and source archive, built from a copy: a build leaves files where it runs."""
    pytest.importorskip("build")
    here = tmp_path_factory.mktemp("package")
    copied = ("src", "docs", "tests", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
    for name in (*copied, "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md"):
        there = here / "copy" / name
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, there, ignore=ignored)
        else:
            there.parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, there)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(here / "dist")]
    done = subprocess.run([*command, str(here / "copy")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return here / "dist"


def test_twine_finds_nothing_wrong(dist: Path) -> None:
    pytest.importorskip("twine")
    files = [str(path) for path in dist.iterdir()]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    there = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "ttgcd").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == there
    assert "ttgcd/py.typed" in shipped and "ttgcd/data/mini/model.safetensors" in shipped
    assert wheel.stat().st_size < 20_000_000


def test_the_source_archive_can_be_tested(dist: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[-1] for name in opened.getnames()}
    assert {"LICENSE", "CITATION.cff", "tests/conftest.py", "docs/method.md"} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_one_version_everywhere() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{ttgcd.__version__}"' in pyproject
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == ttgcd.__version__
    assert citation["cff-version"] == "1.2.0" and citation["authors"] and citation["title"]
    assert f"## {ttgcd.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_card_of_mini_is_metadata_that_the_hub_reads() -> None:
    from huggingface_hub import ModelCard

    card = ModelCard.load(ROOT / "src" / "ttgcd" / "data" / "mini" / "README.md")
    assert card.data.license == "apache-2.0"
    assert card.data.pipeline_tag == "zero-shot-image-classification"
    page = (ROOT / "docs" / "mini-model-card.md").read_text(encoding="utf-8")
    for result in card.data.eval_results:
        assert f"**{result.metric_value}**" in page


def test_workflows_and_settings_of_the_repository_parse() -> None:
    files = [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) >= 6
    for path in files:
        assert yaml.safe_load(path.read_text(encoding="utf-8")), path
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert {"lint", "test", "wheel", "docs"} <= set(ci["jobs"])
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.10", "3.11", "3.12", "3.13"]


def test_constraints_pin_versions_and_tell_no_places() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 30
    for line in lines:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", line), line


def test_the_image_copies_what_is_there() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    sources = [
        w for line in re.findall(r"^COPY (?!--)(.+)$", text, re.M) for w in line.split()[:-1]
    ]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name in sources:
        assert (ROOT / name).exists() and f"!{name.rstrip('/')}" in allowed
