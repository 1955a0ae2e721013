"""Types reach the user: a strict checker accepts right use of the package and refuses wrong use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

ROOT = Path(__file__).parent.parent
#: As for an installed package: what it says about itself counts, its own errors are not the user's.
SETTINGS = """[mypy]
strict = True
follow_imports = silent
[mypy-torch.*,transformers.*,numpy.*,pyarrow.*,PIL.*,sklearn.*,scipy.*,simplejpeg.*]
follow_imports = skip
ignore_missing_imports = True
"""
RIGHT = """
from pathlib import Path

import ttgcd
from ttgcd import InputError, discover


def sort(folder: Path) -> list[str]:
    try:
        found = discover(folder, known=["cat", "dog"], novel=5, model="mini", out=folder / "out")
    except InputError as error:
        return [str(error)]
    samples: int = found.samples
    names: list[str] = [category.name for category in ttgcd.load(folder / "out").categories]
    print(samples, names, found.text(), ttgcd.__version__)
    return [str(row["id"]) for row in found.assignments()]
"""
WRONG = """
import ttgcd

found = ttgcd.discover("photos", known=["cat"], out="out")
found.sample
ttgcd.discover("photos", known=["cat"], resume="yes")
ttgcd.discover("photos", known=3)
ttgcd.discover("photos", known=["cat"], overwite=True)
"""


def check(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    (tmp_path / "user.py").write_text(code)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "user.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )


def test_right_use_passes_strictly(tmp_path: Path) -> None:
    assert (ROOT / "src" / "ttgcd" / "py.typed").is_file()
    done = check(RIGHT, tmp_path)
    assert done.returncode == 0, done.stdout


def test_wrong_use_is_seen(tmp_path: Path) -> None:
    said = check(WRONG, tmp_path).stdout
    assert 'has no attribute "sample"' in said
    assert 'Argument "resume" to "discover" has incompatible type "str"' in said
    assert 'Argument "known" to "discover" has incompatible type "int"' in said
    assert 'Unexpected keyword argument "overwite" for "discover"' in said
